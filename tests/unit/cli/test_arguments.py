"""The arguments of the command line, and the time that its help takes."""

import shutil
import subprocess
import sys
from importlib import import_module

import pytest

from muster_bus.process.command import Exit
from muster_cli.arguments.parser import COMMANDS, WITHOUT_BROKER, parser, parsers
from muster_cli.commands.ask import with_options
from muster_cli.exits import exit_of
from muster_cli.main import run
from muster_cli.manual.completion import script, words_of_commands
from muster_protocol.status_words import AnswerStatus

HEAVY = ("nats", "pydantic", "rich", "fastapi", "anthropic", "opentelemetry", "yaml", "asyncio")


def test_help_imports_nothing_heavy():
    words = [sys.executable, "-X", "importtime", "-m", "muster_cli", "--help"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)

    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.splitlines()}

    assert "argparse" in imported
    assert imported.isdisjoint(HEAVY)
    assert (
        "exit codes: 0 done, 1 failed, 2 usage, 3 partial, 4 cancelled, 5 no broker, 6 no answer in time" in ran.stdout
    )


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
        ("ask x --budget-usd 0", "'0' is not an amount of US dollars above 0"),
        ("submit --map a --in-flight 0", "'0' is not a whole number of at least 1"),
        ("help frobnicate", "invalid choice: 'frobnicate'"),
        ("completion csh", "invalid choice: 'csh'"),
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


def test_options_become_fields_of_the_request_and_win_over_those_of_a_file():
    words = "submit --request r.json --deadline 9 --in-flight 2 --num-tasks 3 --budget-tokens 5 --budget-usd 0.5"
    fields = {"text": "x", "in_flight": 7, "budget": {"tasks": 4, "usd": 1}}

    assert with_options(parser().parse_args(words.split()), fields) == {
        "text": "x",
        "deadline_seconds": 9.0,
        "in_flight": 2,
        "num_tasks": 3,
        "budget": {"tasks": 4, "tokens": 5, "usd": 0.5},
    }
    assert with_options(parser().parse_args(["ask", "x"]), fields) == fields


def test_help_is_a_command_as_well(capsys: pytest.CaptureFixture[str]):
    assert run(["help", "wait"]) == 0
    assert capsys.readouterr().out.startswith("usage: muster wait ")
    assert run(["help"]) == 0
    assert "exit codes:" in capsys.readouterr().out


def test_every_command_that_talks_to_a_broker_takes_its_address():
    takers = {name for name, command in parsers()[1].items() if "--nats-url" in command.format_help()}

    assert takers == set(COMMANDS) - WITHOUT_BROKER - {"help", "completion"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_every_command_and_its_options(shell: str):
    printed = script(shell, words_of_commands())

    for name in COMMANDS:
        assert name in printed
    assert ("-l in-flight" if shell == "fish" else "--in-flight") in printed
    assert set(words_of_commands()["help"]) == set(COMMANDS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(("typed", "offered"), [("tr", "trace"), ("ask --budg", "--budget-tokens --budget-usd")])
def test_bash_offers_what_the_script_says(typed: str, offered: str):
    words = ["muster", *typed.split()]
    ask = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _muster; echo "${{COMPREPLY[*]}}"'
    ran = subprocess.run(
        ["bash", "-c", script("bash", words_of_commands()) + ask], capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip() == offered


@pytest.mark.parametrize(("status", "code"), [("done", 0), ("failed", 1), ("partial", 3), ("cancelled", 4)])
def test_the_exit_code_is_the_answer_status(status: str, code: int):
    assert exit_of(AnswerStatus(status)) == code
