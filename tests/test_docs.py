"""What the documents show is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import forked
from echoic.cli import root

ROOT = Path(__file__).parent.parent


def test_the_readmes_program_prints_what_the_readme_says(tmp_path):
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    promised = re.findall(r"print\(.*?\)\s+# (.+)", program)
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines() == promised


def test_the_readmes_commands_find_what_its_program_kept(tmp_path):
    text = (ROOT / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    asked = re.findall(
        r"^\$ \.venv/bin/(echoic .*)$", re.search(r"```console\n(.*?)```", text, re.DOTALL)[1], re.MULTILINE
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ECHOIC_EMBEDDER": "lexical"}
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120, "env": environment}
    forked.run(
        [sys.executable, "-c", program.replace('echoic.db")', 'echoic.db", embedder="lexical")')], **options
    )
    told = {
        line: forked.run(
            [sys.executable, "-m", "echoic.cli", *shlex.split(line)[1:]], input="Hello\n", **options
        )
        for line in asked
    }
    assert [ran.returncode for ran in told.values()] == [0, 0], told
    assert "peanuts" in next(ran.stdout for line, ran in told.items() if " query " in line)


def test_every_figure_in_the_readme_comes_from_a_result():
    script = ROOT / "scripts" / "figures.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=60)


def test_every_link_in_the_documents_leads_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_has_a_place_in_the_sites_navigation():
    listed = re.findall(r"(?m)^([a-z_]+)$", (ROOT / "docs" / "index.md").read_text())
    assert sorted(listed) == sorted(page.stem for page in ROOT.glob("docs/*.md") if page.stem != "index")


def test_the_way_in_is_two_commands_that_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test", "setup"} <= set(targets)


COMMAND = re.compile(
    r"^(?:\$ )?(?:\w+=\S* )*(?:\.venv/bin/)?(echoic(?: (?:\\\n|[^\n])*)?)$|`(echoic(?: [^`]*)?)`|&& (echoic .*)$",
    re.MULTILINE,
)
"""A line of a block, what stands between backticks, and what follows another command."""


def commands_shown() -> set[tuple[str, str, bool]]:
    """Every `echoic …` that a person is told to type: where, the words, and whether they are complete."""
    pages = [
        *ROOT.glob("*.md"),
        *(page for page in ROOT.glob("docs/*") if page.suffix in {".md", ".txt"}),
        *(
            page
            for folder in ("deploy", "examples")
            for page in (ROOT / folder).rglob("*")
            if page.is_file() and page.suffix != ".pyc"
        ),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("src/**/*.js"),
    ]
    shown = set()
    for page in pages:
        where, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        if page.suffix == ".md":
            blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            shown |= {(where, each, True) for block in blocks for each in found_in(block)}
            text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        prose = re.findall(r"`(echoic [^`{}]*)`", text)
        shown |= {(where, one, False) for found in prose for one in each_of(found)}
    return shown


def found_in(block: str) -> list[str]:
    return [next(filter(None, groups)) for groups in COMMAND.findall(block)]


ONE_OF = re.compile(r"(?<!\[)\b[\w-]+(?: ?\| ?[\w-]+)+")


def each_of(command: str) -> list[str]:
    """`a|b` is two commands."""
    found = ONE_OF.search(command)
    if found is None:
        return [command]
    options = re.split(r" ?\| ?", found[0])
    return [each for one in options for each in each_of(command.replace(found[0], one, 1))]


def refusal(command: str, *, complete: bool) -> str | None:
    """What the real command line has against `command`; nothing of it is run. Prose may leave out arguments."""
    plain = re.sub(r"(--[\w-]+) …", r"\1=x", command)  # an option with a value, and what may be left out
    words = shlex.split(re.sub(r"\[[^\]]+\]|…|\\\n", " ", plain), comments=True)[1:]
    ctx, name, group = None, "echoic", root
    try:
        while isinstance(group, click.Group):
            ctx = group.make_context(name, words, parent=ctx)
            rest = [*ctx._protected_args, *ctx.args]
            if not rest:
                return "no command" if complete else None
            name, group, words = group.resolve_command(ctx, rest)
        group.make_context(name, words, parent=ctx)
    except click.exceptions.Exit:
        return None
    except click.MissingParameter as error:
        return error.format_message() if complete else None
    except click.BadOptionUsage as error:  # an option's value is left out
        return error.format_message() if complete else None
    except click.BadParameter as error:
        unknown = isinstance(error.param.type, click.Path) or re.search(r"'[A-Z]+'", error.message)
        return None if unknown else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


def test_every_command_shown_in_a_page_or_message_is_one_that_the_command_line_takes(capsys):
    shown = commands_shown()
    assert len([each for each in shown if each[2]]) > 25, "blocks"
    assert len(shown) > 120, "and prose"
    wrong = {f"{page}: {words}": why for page, words, full in shown if (why := refusal(words, complete=full))}
    capsys.readouterr()
    assert wrong == {}


@pytest.mark.parametrize(
    "command",
    [
        "echoic remeber x",
        "echoic list --usr ana",
        "echoic tools --format none",
        "echoic set pet",
        "echoic why a b c",
    ],
)
def test_a_command_that_does_not_exist_would_be_noticed(command):
    assert refusal(command, complete=True)


def test_every_target_of_make_that_a_page_names_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        named = re.findall(r"(?:`|^)make ([a-z][\w-]*)(?=[ `\n]|$)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, page.name


def test_what_the_documents_and_examples_import_is_promised_to_stay():
    promised = (ROOT / "docs" / "releases.md").read_text().partition("## Deprecation")[0]
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py")]
    imported = {
        found
        for page in pages
        for found in re.findall(r"(?m)^(?:from|import) (echoic\.[\w.]+)", page.read_text())
    }
    assert len(imported) > 10
    for module in imported:
        family = "echoic.integrations" if module.startswith("echoic.integrations.") else module
        assert f"`{family}`" in promised, f"{module} is imported, and releases.md does not name it"
