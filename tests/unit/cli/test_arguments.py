"""The arguments of the command line, and the time that its help takes."""

import subprocess
import sys
from importlib import import_module

import pytest

from muster_bus.process.command import Exit
from muster_cli.arguments.parser import COMMANDS, parser
from muster_cli.exits import exit_of
from muster_protocol.status_words import AnswerStatus

HEAVY = ("nats", "pydantic", "rich", "fastapi", "anthropic", "opentelemetry", "yaml", "asyncio")


def test_help_imports_nothing_heavy():
    words = [sys.executable, "-X", "importtime", "-m", "muster_cli", "--help"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)

    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.splitlines()}

    assert "argparse" in imported
    assert imported.isdisjoint(HEAVY)
    assert "exit codes: 0 done, 1 failed, 2 usage, 3 partial, 4 cancelled, 5 no broker" in ran.stdout


def test_the_version_is_an_option_as_well(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("muster ")


@pytest.mark.parametrize("place", COMMANDS.values(), ids=COMMANDS)
def test_every_command_exists(place: str):
    module, _, name = place.partition(":")

    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "required: COMMAND"),
        ("frobnicate", "invalid choice"),
        ("ask", "required: TEXT"),
        ("ask x --deadline 0", "'0' is not a number of seconds above 0"),
        ("ask x --deadline inf", "'inf' is not a number of seconds above 0"),
        ("ask x --budget-tokens -5", "--budget-tokens"),
        ("submit", "one of the arguments --plan --map --request is required"),
        ("submit --plan a --map b", "not allowed with"),
        ("up --port 70000", "'70000' is not a port from 1 to 65535"),
        ("worker --slots none", "'none' is not a whole number of at least 1"),
        ("demo --kill me", "invalid choice: 'me'"),
    ],
)
def test_wrong_arguments_are_usage_errors(words: str, complaint: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words.split())

    assert ended.value.code == Exit.USAGE
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [("done", 0), ("failed", 1), ("partial", 3), ("cancelled", 4)])
def test_the_exit_code_is_the_answer_status(status: str, code: int):
    assert exit_of(AnswerStatus(status)) == code
