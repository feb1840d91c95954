"""The public surface is what it says, light to import, and the same without `await`."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import echoic
import echoic.errors
import echoic.sync
from echoic.memory.conversation import OpenConversation
from echoic.memory.user import UserMemory

SOURCES = Path(echoic.__file__).parent
HEAVY = (
    "onnxruntime",
    "tokenizers",
    "pydantic_ai",
    "httpx2",
    "fastapi",
    "uvicorn",
    "onnx",
    "torch",
    "echoic_bench",
    "echoic_loopback",
)


def test_everything_that_is_exported_exists_and_nothing_else_is_public():
    assert all(hasattr(echoic, name) for name in echoic.__all__)
    public = {n for n, v in vars(echoic).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public | {"__version__", "sync"} | set(echoic._HANDED_OUT) == set(echoic.__all__)


def test_every_error_is_exported_in_the_tree_of_errors_and_in_the_reference():
    ours = {
        name
        for name, each in vars(echoic.errors).items()
        if inspect.isclass(each) and each.__module__ == "echoic.errors"
    }
    assert ours == set(echoic.errors.__all__) - {"bounded", "brief"}
    page = (SOURCES.parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in ours:
        assert re.search(rf"(^|─ ){name}\b", echoic.errors.__doc__, re.MULTILINE), name
        assert f"autoexception:: echoic.{name}\n" in page


def returned_by(handle):
    """Names of the library's own classes in what the public verbs and properties of `handle` return."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(handle))).body[0]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield from (each.id for each in ast.walk(node.returns) if isinstance(each, ast.Name))


@pytest.mark.parametrize(
    "handle",
    [echoic.MemoryService, UserMemory, OpenConversation, echoic.Speculation],
    ids=lambda h: h.__name__,
)
def test_what_a_verb_returns_can_be_named(handle):
    plain = {"Any", "Hook", "Mapping", "P", "Self", "bool", "dict", "int", "list", "object", "str", "tuple"}
    assert set(returned_by(handle)) - plain - {"Callable"} <= set(echoic.__all__)


def test_both_seams_can_be_named():
    assert {"Store", "Embedder"} <= set(echoic.__all__)
    assert inspect.isclass(echoic.Store)
    assert inspect.isclass(echoic.Embedder)


def test_importing_echoic_brings_no_provider_and_no_framework():
    code = f"import sys, echoic; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_opening_the_default_loads_nothing_heavy_until_it_is_used():
    code = f"import sys, echoic; echoic.open('memory://'); print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "bad", [{"url": "redis://x"}, {"embedder": "psychic"}, {"fusion": "cold"}, {"model": "x:y"}]
)
def test_what_is_unknown_is_refused_at_once_and_by_name(bad):
    with pytest.raises(echoic.InvalidInput, match=next(iter(bad.values())).split(":")[0]):
        echoic.open(**{"url": "memory://", **bad})


async def test_before_and_after_it_is_open_nothing_answers_as_if_nothing_were_known(tmp_path):
    memory = echoic.open(f"sqlite:///{tmp_path}/x.db", embedder="lexical")
    assert not (tmp_path / "x.db").exists(), "a constructor does no I/O"
    with pytest.raises(echoic.NotOpen):
        await memory.user("ana").get("k")
    await memory.open()
    await memory.user("ana").set("k", "v")
    await memory.aclose()
    await memory.aclose()
    with pytest.raises(echoic.NotOpen):
        await memory.user("ana").query("k")


def test_the_blocking_facade_has_every_verb_and_no_other(tmp_path):
    url = f"sqlite:///{tmp_path}/sync.db"
    with echoic.sync.open(url, embedder="lexical") as memory:
        ana = memory.user("ana")
        assert set(dir(ana)) == set(dir(ana._handle))
        ana.set("user_name", "Ana")
        assert ana.get("user_name").text == "Ana"
        call = ana.conversation("call-1")
        call.append(echoic.Turn(speaker="user", text="hello"))
        assert [t.text for t in call.turns()] == ["hello"]
        assert ana.scope == echoic.Scope("default", "ana")
        with pytest.raises(echoic.InvalidInput):
            ana.set("", "x")
    with echoic.sync.open(url, embedder="lexical") as memory:
        assert memory.user("ana").query("user name")[0].text == "Ana"


@pytest.mark.parametrize("handle", [UserMemory, OpenConversation])
def test_every_public_verb_says_what_it_does(handle):
    verbs = [v for n, v in vars(handle).items() if inspect.isfunction(v) and not n.startswith("_")]
    assert verbs
    assert all(v.__doc__ for v in verbs)


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph("echoic", "echoic_bench", "echoic_loopback")
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def definitions(*kinds):
    """The definitions of these kinds in the library, each with its file."""
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, kinds):
                yield file.relative_to(SOURCES), node


def test_no_function_is_longer_than_a_screen():
    functions = definitions(ast.FunctionDef, ast.AsyncFunctionDef)
    lengths = {f"{file}: {node.name}": node.end_lineno - node.lineno + 1 for file, node in functions}
    assert len(lengths) > 1000
    assert not {name: lines for name, lines in lengths.items() if lines > 60}


def test_a_class_name_means_one_thing():
    homes = {}
    for file, node in definitions(ast.ClassDef):
        homes.setdefault(node.name.lstrip("_"), []).append(str(file))
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_no_module_repeats_the_name_of_its_package():
    files = [file.relative_to(SOURCES) for file in SOURCES.rglob("*.py")]
    assert not [str(file) for file in files if set(file.stem.split("_")) & set(file.parts[:-1])]


def test_a_plain_set_and_query_load_nothing_that_they_do_not_use(tmp_path):
    code = (
        "import asyncio, sys, echoic\n"
        "async def main():\n"
        f"    async with echoic.open('sqlite:///{tmp_path}/x.db', embedder='lexical') as memory:\n"
        "        await memory.user('ana').set('user_name', 'Ana')\n"
        "        await memory.user('ana').query('what is my name?')\n"
        "asyncio.run(main())\n"
        "print(*(name for name in sys.modules if name.startswith('echoic.')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unused = {"extraction", "experience", "erasure", "forget_targets", "retraction", "export", "global_facts"}
    unused |= {"proposals", "block", "keyless", "capability", "session", "server", "cli", "models"}
    assert not [name for name in out.stdout.split() if set(name.split(".")) & unused]


def test_the_blocking_facade_is_there_once_it_is_named_and_not_before():
    code = (
        "import sys, echoic; print('echoic.sync' in sys.modules, 'echoic.memory.service' in sys.modules); "
        "print(callable(echoic.sync.open), 'sync' in dir(echoic))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False", "True", "True"]
