"""A process logs lines for people, or one JSON object for each line."""

import json
import logging

import pytest

from muster_bus.process.logging import set_up_logging
from muster_bus.process.settings import LogSettings

log = logging.getLogger("muster.example")


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

    (line,) = (json.loads(text) for text in capsys.readouterr().err.splitlines())
    assert (line["level"], line["service"], line["instance"]) == ("error", "worker", "1")
    assert line["message"] == "task t1 failed"
    assert "ValueError: no such tag" in line["stack"]
