"""docs/protocol.md documents every field of every message, and its examples can be read."""

import json
import re
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import CONTROL_KINDS, LOG_KINDS, MESSAGES, Message

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
CHAPTERS = re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
SECTIONS: dict[str, str] = dict(CHAPTERS)
RESERVED = {"replan", "snapshot", "approve", "edit", "reject"}


def of_kind(message: type[Message]) -> str:
    return message.kind


@pytest.mark.parametrize("message", MESSAGES, ids=of_kind)
def test_every_field_of_a_message_is_documented_and_no_other(message: type[Message]):
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[message.kind], re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert documented == set(message.model_fields)


@pytest.mark.parametrize("message", MESSAGES, ids=of_kind)
def test_the_example_of_a_message_can_be_read(message: type[Message]):
    (example,) = re.findall(r"```json\n(.*?)```", SECTIONS[message.kind], re.DOTALL)

    read = message.read(example.encode())

    assert json.loads(example).keys() <= read.model_fields_set


def test_every_subject_and_every_reserved_kind_is_documented():
    documented = [subjects.requests("<team>"), subjects.tasks("<tag>"), subjects.ERRORS]
    documented += [subject("<request_id>") for subject in (subjects.results, subjects.events, subjects.control)]

    assert all(f"`{subject}`" in PAGE for subject in documented)
    assert all(f"`{kind}`" in PAGE for kind in RESERVED)
    assert not RESERVED & {*LOG_KINDS, *CONTROL_KINDS}
