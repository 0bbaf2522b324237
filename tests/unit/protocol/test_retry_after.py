"""`Retry-After`: seconds or a date, in any of the forms that HTTP has, and whatever else somebody writes there."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.calling.retry_after import asked_seconds
from tests.guards import guards

NOW = datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC)
FILE = "libs/protocol/muster_protocol/calling/retry_after.py"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (" 60 ", 60.0),
        ("1.5", 1.5),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Friday, 15-Jan-27 08:01:00 GMT", 60.0),
        ("Fri Jan 15 08:01:00 2027", 60.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("-5", None),
        ("nan", None),
        ("in a minute", None),
        ("Fri, 99 Jan 2027 08:01:00 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_every_form_is_read(said: str | None, expected: float | None) -> None:
    assert asked_seconds(said, None, NOW.timestamp()) == expected


@guards(FILE, "now if asked_at is None else asked_at", rule="I4", replace="now")
def test_a_date_counts_from_the_clock_of_the_server_that_says_it() -> None:
    ahead = "Fri, 15 Jan 2027 09:00:00 GMT"

    assert asked_seconds("Fri, 15 Jan 2027 09:00:20 GMT", ahead, NOW.timestamp()) == 20.0
    assert asked_seconds("20", ahead, NOW.timestamp()) == 20.0


@given(st.integers(0, 10**6))
def test_seconds_and_their_date_ask_for_the_same(seconds: int) -> None:
    until = format_datetime(datetime.fromtimestamp(NOW.timestamp() + seconds, UTC), usegmt=True)

    assert asked_seconds(until, None, NOW.timestamp()) == asked_seconds(str(seconds), None, 0.0) == seconds


@given(st.text() | st.none(), st.text() | st.none())
def test_whatever_is_written_there_never_asks_for_less_than_nothing(said: str | None, date: str | None) -> None:
    found = asked_seconds(said, date, NOW.timestamp())

    assert found is None or found >= 0
