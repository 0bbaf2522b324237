"""A process logs lines for people, or one JSON object for each line; nothing foreign can forge or garble one."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_bus.process.about import NOTHING, fields_of, work_for
from muster_bus.process.logging import JsonLines, TextLines, set_up_logging
from muster_bus.process.settings import LogSettings
from muster_bus.redact import KNOWN
from muster_protocol.attempt_id import AttemptId
from tests.guards import guards

log = logging.getLogger("muster.example")
FORMATTERS = "libs/bus/muster_bus/process/logging.py"


@pytest.fixture(autouse=True)
def restored() -> Generator[None]:
    root, ours = logging.getLogger(), logging.getLogger("muster")
    before = root.handlers[:], root.level, ours.level, sys.stderr, sys.excepthook, threading.excepthook
    yield
    root.handlers[:], root.level, ours.level, sys.stderr, sys.excepthook, threading.excepthook = before
    logging.captureWarnings(False)


def _documents(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_for_people_names_the_process(capsys: pytest.CaptureFixture[str]):
    set_up_logging("worker", "1", LogSettings())

    log.info("ready: %d slots", 4)
    log.debug("not shown")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" worker-1  ready: 4 slots")


def test_a_json_line_has_the_level_the_process_and_the_stack(capsys: pytest.CaptureFixture[str]):
    set_up_logging("worker", "1", LogSettings(is_json=True, level="warning"))

    log.info("not shown")
    try:
        raise ValueError("no such tag")
    except ValueError:
        log.exception("task %s failed", "t1")

    (line,) = _documents(capsys)
    assert (line["level"], line["service"], line["instance"]) == ("error", "worker", "1")
    assert line["message"] == "task t1 failed"
    assert "ValueError: no such tag" in line["stack"]


def test_a_json_line_has_request_task_attempt_worker_status_and_error_class(capsys: pytest.CaptureFixture[str]):
    set_up_logging("worker", "w1", LogSettings(is_json=True))

    async def attempt() -> None:
        work_for(AttemptId("7f3a", "find", 2))
        await asyncio.to_thread(logging.getLogger("roles").warning, "said by the role's own code")
        log.info("failed", extra={"status": "failed", "error_class": "network"})

    asyncio.run(attempt())

    about = {"request": "7f3a", "task": "find", "attempt": 2, "worker": "worker-w1"}
    said, failed = _documents(capsys)
    assert said.items() >= {**about, "logger": "roles"}.items()
    assert failed.items() >= {**about, "status": "failed", "error_class": "network"}.items()
    assert AttemptId("", "", 0) == NOTHING


def test_a_json_line_about_what_another_process_does_has_its_fields(capsys: pytest.CaptureFixture[str]):
    set_up_logging("supervisor", "s1", LogSettings(is_json=True))

    log.warning("silent", extra={**fields_of(AttemptId("7f3a", "find", 2)), "worker": "worker-w2"})
    log.warning("silent", extra={**fields_of(None), "worker": None})

    one, none = _documents(capsys)
    assert one.items() >= {"request": "7f3a", "task": "find", "attempt": 2, "worker": "worker-w2"}.items()
    assert none.keys().isdisjoint({"request", "task", "attempt", "worker"})


def test_every_line_of_every_library_is_json(capsys: pytest.CaptureFixture[str]):
    set_up_logging("worker", "w1", LogSettings(is_json=True))

    logging.getLogger("opentelemetry.exporter").error("no collector\nat all")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    print("printed\nby a library", file=sys.stderr)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    messages = [line["message"] for line in _documents(capsys)]
    assert messages[:2] == ["no collector\nat all", "Invalid HTTP request received."]
    assert "DeprecationWarning: old" in messages[2]
    assert messages[3:5] == ["printed", "by a library"]
    assert "ZeroDivisionError" in messages[5]


@guards(FORMATTERS, "settings.is_json or owns_stdout", rule="I10", replace="settings.is_json")
def test_what_a_role_prints_for_people_is_a_line_of_the_log_without_secrets_and_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    KNOWN.add([("TILL_KEY", "sk-known-to-the-till")])
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back at the end
    set_up_logging("worker", "w1", LogSettings(), owns_stdout=True)

    print("21:00:00 supervisor-x  forged\r\nsk-known-to-the-till \x1b]52;c;aGk=\x07")
    print("12 %\r99 %\rall of it", file=sys.stderr)
    print("which one? ", end="", flush=True)

    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.partition(" ")[2] for line in printed.err.splitlines()] == [
        "worker-w1  21:00:00 supervisor-x  forged",
        "worker-w1  [redacted TILL_KEY] \\x1b]52;c;aGk=\\x07",
        "worker-w1  all of it",
        "worker-w1  which one?",
    ]


def test_a_process_without_a_name_is_called_by_what_it_is(capsys: pytest.CaptureFixture[str]):
    set_up_logging("provision", "", LogSettings())
    log.info("done")
    set_up_logging("worker", "", LogSettings(is_json=True))
    log.info("done")

    text, document = capsys.readouterr().err.splitlines()
    assert text.endswith(" provision  done")
    assert json.loads(document).keys().isdisjoint({"instance", "worker"})


def test_an_uncaught_exception_ends_a_process_with_one_json_line():
    setting_up = "from muster_bus.process.logging import *; set_up_logging('worker', '1', LogSettings(is_json=True))"
    ended = subprocess.run(
        [sys.executable, "-c", f"{setting_up}\nraise ValueError('two\\nlines')"],
        capture_output=True,
        text=True,
        check=False,
    )

    (line,) = (json.loads(text) for text in ended.stderr.splitlines())
    assert ended.returncode == 1
    assert (line["level"], line["message"]) == ("critical", "the process ends: ValueError: two\nlines")


def _record(text: str) -> logging.LogRecord:
    try:
        raise ValueError(text)
    except ValueError:
        return logging.LogRecord("muster.x", logging.ERROR, "x.py", 1, "said %s", (text,), sys.exc_info())


@guards(FORMATTERS, "printable(_shown(record.getMessage()))", rule="I10", replace="_shown(record.getMessage())")
@given(st.text(st.characters(), max_size=200))
def test_no_foreign_text_forges_a_line_or_reaches_a_terminal_as_a_command(text: str):
    first, *stack = TextLines("worker", "1").format(_record(text)).split("\n")

    assert first.isprintable()
    assert stack
    assert all(line.startswith("  | ") and line.isprintable() for line in stack)


@guards(FORMATTERS, "return printable_json(json.dumps(", rule="I10", replace="return str(json.dumps(")
@given(st.text(st.characters(), max_size=200))
def test_a_json_line_is_one_printable_line_that_says_what_was_said(text: str):
    line = JsonLines("worker", "1").format(_record(text))

    assert line.isprintable()
    assert json.loads(line)["message"] == f"said {text}"


@guards(FORMATTERS, "return KNOWN(without_user_info(text))", rule="I10", replace="return text")
def test_a_line_shows_neither_a_known_secret_nor_the_user_of_an_address():
    KNOWN.add([("SHOP_KEY", "sk-known-to-this-test")])
    record = _record("sk-known-to-this-test at nats://me:pw@host:4222")

    lines = [formatter.format(record) for formatter in (TextLines("worker", "1"), JsonLines("worker", "1"))]

    assert all("[redacted SHOP_KEY] at nats://host:4222" in line for line in lines)
    assert not any("sk-known-to-this-test" in line or "me:pw" in line for line in lines)
