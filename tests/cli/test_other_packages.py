"""Commands that other installed packages bring."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from echoic.cli import command as commands
from echoic.cli import main, root
from echoic.cli.output import BAD_INPUT


@pytest.fixture
def installed(monkeypatch):
    """Makes these, and no others, the commands that are installed."""

    def install(**points: str) -> None:
        found = [EntryPoint(name.replace("__", "."), to, "echoic.commands") for name, to in points.items()]
        monkeypatch.setattr(
            commands, "entry_points", lambda group: found if group == "echoic.commands" else []
        )

    return install


@commands.command("greet")
@click.argument("name")
def greet(name: str) -> int:
    """Greet NAME."""
    click.echo(f"hello {name}")
    return 0


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["bench", "recall", "talks.jsonl", "--facts"], "echoic-bench"),
        (["tune", "talks.jsonl", "--out", "x.json"], "echoic-bench"),
        (["phone", "simulate", "--calls", "2"], "echoic-loopback"),
    ],
)
def test_a_command_whose_package_is_missing_says_what_to_install(installed, capsys, words, package):
    installed()
    assert main(words) == BAD_INPUT
    assert f"pip install {package}" in capsys.readouterr().err


def test_a_command_whose_package_lacks_another_says_so(installed, capsys):
    installed(bench="nowhere_at_all.cli:bench_group")
    assert main(["bench", "recall", "x"]) == BAD_INPUT
    told = capsys.readouterr().err
    assert "nowhere_at_all" in told
    assert "pip install echoic-bench" in told


@pytest.mark.parametrize("point", ["nowhere_at_all:x", "json:no_such_name", "this:"])
def test_one_that_cannot_be_loaded_spoils_no_help_and_no_other_command(installed, point):
    installed(broken=point)
    ran = CliRunner().invoke(root, ["--help"])
    assert ran.exit_code == 0
    assert "broken" in ran.output
    assert "bench" in ran.output


def test_a_package_of_anybody_adds_a_command_to_the_program_and_to_a_group(installed, capsys):
    installed(greet=f"{__name__}:greet", phone__greet=f"{__name__}:greet")
    assert main(["greet", "Ana"]) == 0
    assert main(["phone", "greet", "Ben"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["hello Ana", "hello Ben"]
    assert "Greet NAME." in CliRunner().invoke(root, ["--help"]).output


def test_a_command_of_ours_cannot_be_replaced_by_another_package(installed):
    installed(get=f"{__name__}:greet")
    assert root.get_command(click.Context(root, info_name="echoic"), "get") is root.commands["get"]


def test_a_package_of_an_extra_that_is_missing_is_named_with_its_extra(monkeypatch, capsys):
    def missing(*_args, **_kwargs):
        raise ModuleNotFoundError("No module named 'pymongo'", name="pymongo")

    monkeypatch.setattr("echoic.cli.asyncio_runner.memory_at", missing)
    assert main(["get", "home"]) == BAD_INPUT
    assert "pip install 'echoic[mongodb]'" in capsys.readouterr().err
