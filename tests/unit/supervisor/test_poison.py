"""When a request is given up as poison, before and after its body is read."""

import pytest

from muster_protocol.fold import RequestState
from muster_supervisor.poison import may_be_poison, poison_reason
from tests.unit.protocol.log_builder import LogBuilder, answer


def taken_once() -> RequestState:
    log = LogBuilder()
    log.take()
    return log.state


@pytest.mark.parametrize(("delivery", "is_poison"), [(1, False), (3, False), (4, True), (9, True)])
def test_a_request_that_nobody_could_take_is_poison_at_its_fourth_delivery(delivery: int, is_poison: bool):
    assert bool(poison_reason(RequestState("r1"), delivery, is_read=False)) == is_poison
    assert may_be_poison(delivery) == is_poison


@pytest.mark.parametrize(("is_read", "first"), [(True, 4), (False, 5)])
def test_a_request_that_was_taken_before_may_be_read_once_more_to_be_answered_from_its_log(is_read: bool, first: int):
    judged = [delivery for delivery in range(1, 8) if poison_reason(taken_once(), delivery, is_read=is_read)]

    assert judged[0] == first


def test_the_reason_says_how_often_the_request_was_taken():
    reason = poison_reason(taken_once(), 4, is_read=True)

    assert reason == "the request was taken 3 times without any progress: poison"


def test_an_answered_request_is_never_poison():
    log = LogBuilder()
    log.take()
    log.own(answer())

    assert not poison_reason(log.state, 9, is_read=True)
