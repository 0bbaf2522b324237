"""Subjects and ids: nothing that a user sends can change a subject."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol import subjects
from muster_protocol.subjects import PRIORITIES

BODY = b'{"text": "hello"}'


@given(st.text())
def test_any_text_becomes_an_id_and_an_id_stays_what_it_is(text: str):
    found = subjects.as_id(text)

    assert subjects.is_id(found)
    assert subjects.as_id(found) == found


@pytest.mark.parametrize("text", ["", "a.b", "a b", "*", ">", "a\n", "ä", "x" * 65])
def test_what_could_break_a_subject_is_no_id(text: str):
    assert not subjects.is_id(text)
    assert "." not in subjects.as_id(text)


def test_the_message_id_names_a_request_before_its_body_does():
    assert subjects.request_id("from-header", "from-body", 7, BODY) == "from-header"
    assert subjects.request_id(None, "from-body", 7, BODY) == "from-body"


def test_a_request_without_any_id_is_named_by_its_place_and_its_body():
    assert subjects.request_id(None, None, 7, BODY) == "7-fe63cf9369e8"
    assert subjects.request_id("", "", 7, BODY) == "7-fe63cf9369e8"


def test_every_subject_is_what_the_wire_says():
    found = [subjects.requests("default"), subjects.tasks("math"), subjects.results("r1"), subjects.live("r1")]

    assert found == ["requests.default", "tasks.math", "results.r1", "live.results.r1"]
    assert (subjects.events("r1"), subjects.control("r1"), subjects.ERRORS) == ("events.r1", "control.r1", "errors")
    assert subjects.last_token("control.r1") == "r1"


def test_the_lanes_of_a_tag_are_under_its_subject():
    found = [subjects.tasks("math", lane) for lane in PRIORITIES]

    assert found == ["tasks.math.high", "tasks.math", "tasks.math.low"]
    assert [subjects.lane_of(subject) for subject in found] == [("math", lane) for lane in PRIORITIES]
