"""Writes src/echoic/blocking.pyi from the asynchronous classes; with --check says whether it is current."""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from echoic.embedding import base as embedding
from echoic.memory import (
    conversation,
    deployment_keys,
    experience,
    global_facts,
    items,
    proposals,
    service,
    speculation,
    user,
)
from echoic.stores import base as stores

MODULE = Path(__file__).resolve().parent.parent / "src" / "echoic" / "blocking.pyi"
HANDLES = (
    service.MemoryService,
    user.UserMemory,
    speculation.Speculation,
    conversation.OpenConversation,
    items.Items,
    proposals.Proposals,
    global_facts.GlobalFacts,
    deployment_keys.Revocations,
    deployment_keys.DeploymentKeys,
    experience.AgentExperience,
    stores.Store,
    embedding.Embedder,
)
NAMES = frozenset(handle.__name__ for handle in HANDLES)
ENTERED = frozenset({service.MemoryService, speculation.Speculation})
"""What is used with `with`."""

OPENING = "# Written by scripts/blocking.py from the asynchronous classes, whose docstrings say more."

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Written:
    """The module in the making: classes, and what their annotations need."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {"typing": {"Protocol"}}
        self.classes: list[str] = []

    def add(self, handle: type) -> None:
        """`handle` as a protocol, with what it inherits."""
        members: dict[str, list[str]] = {}
        for base in reversed(handle.__mro__):
            if base.__module__.startswith("echoic."):
                module = sys.modules[base.__module__]
                found: dict[str, list[str]] = {}
                for name, lines in self._members(base, module):
                    found.setdefault(name, []).append(lines)
                members |= found
        if handle in ENTERED:
            members["__enter__"] = ["def __enter__(self) -> Self: ..."]
            members["__exit__"] = [
                "def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, "
                "trace: TracebackType | None) -> None: ..."
            ]
            self.imports["typing"].add("Self")
            self.imports.setdefault("types", set()).add("TracebackType")
        body = "\n\n".join(lines for each in members.values() for lines in each)
        head = f'class Blocking{handle.__name__}(Protocol):\n"""`{handle.__name__}`, blocking."""\n\n{body}'
        self.classes.append(head.replace("\n", "\n    "))

    def text(self) -> str:
        """All of it."""
        lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in self.imports.items()]
        raw = "\n".join([OPENING, *lines, *self.classes, self._all()])
        raw = _ruff(raw, "check", "--fix", "--select=I,F401", "--quiet")
        return _ruff(raw, "format", "--quiet")

    def _all(self) -> str:
        return f"__all__ = {sorted('Blocking' + name for name in NAMES)!r}"

    def _members(self, base: type, module: ModuleType) -> Iterator[tuple[str, str]]:
        tree = ast.parse(inspect.getsource(base)).body[0]
        assert isinstance(tree, ast.ClassDef)
        overloaded: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                if not name.startswith("_"):
                    yield name, f"{name}: {self._annotation(node.annotation, module)}"
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name == "__init__":
                    yield from self._attributes(node, module)
                if node.name.startswith("_"):
                    continue
                kinds = {ast.unparse(decorator) for decorator in node.decorator_list}
                if "overload" in kinds:
                    overloaded.add(node.name)
                elif node.name in overloaded:
                    continue
                yield node.name, self._function(node, kinds & {"overload", "property"}, module)

    def _attributes(self, init: Function, module: ModuleType) -> Iterator[tuple[str, str]]:
        """What the constructor sets and says the type of."""
        for node in ast.walk(init):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
                name = node.target.attr
                if not name.startswith("_"):
                    yield name, f"{name}: {self._annotation(node.annotation, module)}"

    def _function(self, node: Function, decorators: set[str], module: ModuleType) -> str:
        for decorator in decorators - {"property"}:
            self.imports["typing"].add(decorator)
        given = node.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if argument is not None and argument.annotation is not None:
                argument.annotation = ast.Name(self._annotation(argument.annotation, module))
        given.defaults = [_default(each) for each in given.defaults]
        given.kw_defaults = [each and _default(each) for each in given.kw_defaults]
        assert node.returns is not None
        head = [f"@{decorator}" for decorator in sorted(decorators)]
        head.append(f"def {node.name}({ast.unparse(given)}) -> {self._annotation(node.returns, module)}:")
        said = (ast.get_docstring(node) or "").partition("\n")[0]
        head.append(f'    """{said}"""' if said else "    ...")
        return "\n".join(head)

    def _annotation(self, node: ast.expr, module: ModuleType) -> str:
        """`node` as text, handles as their blocking counterparts, with its names imported."""
        imported = _imports(module)
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                if each.id in NAMES:
                    each.id = f"Blocking{each.id}"
                elif each.id in imported:
                    self.imports.setdefault(imported[each.id], set()).add(each.id)
                elif hasattr(module, each.id):
                    self.imports.setdefault(module.__name__, set()).add(each.id)
        return ast.unparse(node)


@functools.cache
def _imports(module: ModuleType) -> dict[str, str]:
    """From where `module` has the names that it imports."""
    return {
        alias.name: node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _default(node: ast.expr) -> ast.expr:
    """A default that says itself; a constant's name says nothing to whoever reads the protocol alone."""
    return node if isinstance(node, ast.Constant) else ast.Constant(...)


def _ruff(text: str, *arguments: str) -> str:
    ran = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(MODULE), "-"]
    return subprocess.run(ran, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the module is stale")
    written = Written()
    for handle in HANDLES:
        written.add(handle)
    text = written.text()
    if parser.parse_args().check:
        if MODULE.read_text() != text:
            sys.stderr.write(f"{MODULE.name} is stale: run scripts/blocking.py\n")
            return 1
        return 0
    MODULE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
