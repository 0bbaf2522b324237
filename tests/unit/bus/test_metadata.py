"""What the broker writes beside a message: its times, and the reply subject that names the delivery."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_bus.broker.nats_fast import FastClient, Incoming
from muster_bus.lease import Delivery, LeaseKeeper
from muster_bus.read_stream import timestamp

PLAIN = "$JS.ACK.TASKS.w_math.3.41.57.1700000000123456789.9"
WITH_DOMAIN = "$JS.ACK.hub.ACCOUNTHASH.TASKS.w_math.3.41.57.1700000000123456789.9"


def delivered(reply: str) -> Delivery:
    return Delivery.of(Incoming("tasks.math", reply, b"{}", {"kind": "task"}), LeaseKeeper(FastClient(), 1.0))


@pytest.mark.parametrize("reply", [PLAIN, WITH_DOMAIN, WITH_DOMAIN + ".random"])
def test_the_reply_subject_names_stream_consumer_delivery_and_time(reply: str):
    delivery = delivered(reply)

    assert (delivery.stream, delivery.consumer, delivery.number, delivery.sequence) == ("TASKS", "w_math", 3, 41)
    assert delivery.time == pytest.approx(1_700_000_000.123456, abs=1e-5)
    assert delivery.lease.reply == reply


def test_a_delivery_is_held_until_it_is_settled():
    delivery = delivered(PLAIN)
    assert delivery.lease.is_held

    delivery.lease.drop()

    assert not delivery.lease.is_held


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20.5Z", 1_700_000_000.5),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000.123456789),
    ],
)
def test_a_time_of_the_broker_is_read_with_any_number_of_digits(text: str, seconds: float):
    assert timestamp(text) == pytest.approx(seconds, abs=1e-6)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(0, 999))
def test_a_time_is_read_as_it_was_written(moment: datetime, nanoseconds: int):
    text = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06}{nanoseconds:03}".rstrip("0").rstrip(".") + "Z"

    assert timestamp(text) == pytest.approx(moment.replace(tzinfo=UTC).timestamp(), abs=2e-6)
