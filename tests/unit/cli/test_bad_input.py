"""Wrong input or a wrong environment is one line that names what is wrong and what to do."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from muster_bus.broker.embedded import free_port
from tests.flow.command_line import Here


@pytest.fixture
def alone(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_bad_input_is_named(alone: Here):
    (alone.folder / "list.json").write_text("[1]")
    (alone.folder / "cut.json").write_text('{"tasks": [')
    (alone.folder / "odd.json").write_text('{"tasks": [{"id": "a", "description": "x", "dependancies": []}]}')
    (alone.folder / "poor.json").write_text('{"text": "hello", "budget": null}')
    (alone.folder / "broken.py").write_text("def x(:\n")
    (alone.folder / "broken.yaml").write_text('team: t\nroles: [{name: r, run: "broken:x"}]\n')
    for words, complaint in (
        (["submit", "--plan", "missing.json"], "--plan: cannot read missing.json: No such file or directory"),
        (["submit", "--plan", "cut.json"], "--plan: cut.json is not JSON"),
        (["submit", "--request", "list.json"], "--request: list.json holds list, not a JSON object"),
        (["submit", "--plan", "team.yaml"], "--plan: team.yaml is not JSON"),
        (["submit", "--plan", "odd.json"], "plan.tasks.0.dependancies: no such field; did you mean 'dependencies'?"),
        (["up", "--team-file", "broken.yaml"], "broken.yaml:2: roles.0.run (r): broken:x: cannot import 'broken': Syn"),
        (["submit", "--request", "poor.json", "--budget-tokens", "5"], "budget: "),
        (["ask", " "], "text is empty"),
        (["up", "--team-file", "missing.yaml"], "--team-file: there is no team file missing.yaml"),
        (["worker", "--role", "goood"], "no role 'goood'"),
    ):
        ran = alone.run(*words)
        assert (ran.returncode, ran.stdout) == (2, ""), words
        assert complaint in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_without_a_broker_the_error_says_what_to_do(alone: Here):
    ran = alone.run("ask", "anything", MUSTER_NATS_URL=f"nats://127.0.0.1:{free_port()}")

    assert ran.returncode == 5
    assert "start one with `muster up`, or set MUSTER_NATS_URL" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("url", ["nats://127.0.0.1:99999", ",", "http://127.0.0.1:4222", "nats://"])
def test_a_wrong_broker_address_is_named(alone: Here, url: str):
    ran = alone.run("status", MUSTER_NATS_URL=url)

    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "MUSTER_NATS_URL: " in ran.stderr
    assert "is no address of a NATS server" in ran.stderr


def test_a_file_in_place_of_the_folder_is_named(alone: Here):
    (alone.folder / ".muster").write_text("a file")

    for word in ("up", "demo"):
        ran = alone.run(word)
        assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
        assert "cannot use the folder .muster" in ran.stderr


def test_an_answer_that_cannot_be_written_is_one_line(alone: Here):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "muster_cli", "reset"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=alone.folder,
            env=alone.env,
            text=True,
            timeout=60,
            check=False,
        )

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    assert "No space left on device" in ran.stderr


def test_a_port_that_was_named_must_be_free(alone: Here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--port", "--http-port"):
            ran = alone.run("up", option, str(port))
            assert ran.returncode == 1
            assert f"port {port} is in use; name another with {option}" in ran.stderr


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("MUSTER_HEALTH_PORT", "abc", "MUSTER_HEALTH_PORT: 'abc' is not a port from 1 to 65535"),
        ("MUSTER_HTTP_PORT", "nan", "MUSTER_HTTP_PORT: 'nan' is not a port from 1 to 65535"),
        ("MUSTER_HTTP_PORT", "70000", "MUSTER_HTTP_PORT: '70000' is not a port from 1 to 65535"),
        ("MUSTER_GRACE_SECONDS", "inf", "MUSTER_GRACE_SECONDS: 'inf' is not a number of seconds"),
    ],
)
def test_a_wrong_number_in_the_environment_is_named(alone: Here, name: str, text: str, complaint: str):
    ran = alone.run("up", **{name: text})

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"muster: {complaint}\n"


def test_a_health_port_that_is_taken_is_named_with_what_to_do(alone: Here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = alone.run("up", MUSTER_HEALTH_PORT=str(port))

    assert ran.returncode == 1
    assert f"MUSTER_HEALTH_PORT: cannot listen on 127.0.0.1:{port}" in ran.stderr
    assert "set it to a free port, or to nothing" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_role_that_cannot_be_imported_stops_up_before_it_is_up(alone: Here):
    (alone.folder / "roles.py").write_text("")

    ran = alone.run("up")

    assert ran.returncode == 2
    assert "'roles' has no function" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_check_says_all_mistakes_and_starts_nothing_and_the_services_say_the_same(alone: Here):
    (alone.folder / "loud.py").write_text("print('imported')\ndef one(task): return 1\n")
    (alone.folder / "bad.yaml").write_text(
        "team: t\nroles:\n- {name: r, run: 'loud:one'}\n- {name: s, model: gpt-9}\nlimits: {deadline_seconds: .inf}\n"
    )
    of_the_file = [
        "bad.yaml:4: roles.1.model (s): unknown model 'gpt-9'; known: auto, claude-…, offline, or provider/model",
        "bad.yaml:5: limits.deadline_seconds: needs a finite number, not .inf",
    ]
    of_the_code = "bad.yaml:3: roles.0.run (r): loud:one: takes (task); a role's function takes (task, ctx)"

    ran = alone.run("check", "bad.yaml")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.splitlines() == ["imported", "muster: 3 mistakes in bad.yaml:", of_the_code, *of_the_file]
    mistakes = json.loads(alone.run("check", "bad.yaml", "--json").stdout)["mistakes"]
    assert [(m["line"], m["path"], m["role"]) for m in mistakes] == [
        (3, "roles.0.run", "r"),
        (4, "roles.1.model", "s"),
        (5, "limits.deadline_seconds", None),
    ]
    for word, said in (
        ("up", of_the_file),
        ("worker", [of_the_code, *of_the_file]),
        ("supervisor", of_the_file),
        ("provision", of_the_file),
    ):
        ran = alone.run(word, "--team-file", "bad.yaml")
        assert ran.returncode == 2
        assert ran.stderr.replace(f"{alone.folder}/", "").splitlines()[-len(said) :] == said
    assert not (alone.folder / ".muster").exists()


def test_check_says_that_a_team_file_is_fine(alone: Here):
    (alone.folder / "fine.yaml").write_text("team: t\nroles: [{name: r}]\n")

    ran = alone.run("check", MUSTER_TEAM_FILE="fine.yaml")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("fine.yaml is fine: team t, roles r\n")
    assert json.loads(alone.run("check", "fine.yaml", "--json").stdout)["mistakes"] == []
