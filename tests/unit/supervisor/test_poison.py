"""When a request is given up as poison, before and after its body is read."""

import pytest

from muster_protocol.fold import RequestState
from muster_protocol.workers.card import WorkerCard
from muster_supervisor.poison import (
    MAX_DOUBTFUL_TAKES,
    may_be_poison,
    may_be_worked_on,
    poison_reason,
    waits_in_queue,
)
from tests.guards import guards
from tests.unit.protocol.log_builder import (
    FAR,
    START,
    LogBuilder,
    answer,
    failure,
    planned,
    reserved,
    result,
    revision,
    statuses,
    task,
)

POISON = "services/supervisor/muster_supervisor/poison.py"


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


def with_one(phase: str) -> RequestState:
    """A planned request whose only task is in this phase."""
    log = planned(task("a"))
    if phase != "ready":
        log.own(reserved(("a", 1)))
    match phase:
        case "awaiting_retry":
            log.work(failure("a"))
        case "delayed":
            log.work(failure("a"))
            log.own(revision("a", 2, FAR))
        case "done":
            log.work(result("a"))
        case _:
            pass
    assert statuses(log.state) == {"a": phase}
    return log.state


@pytest.mark.parametrize(
    ("phase", "is_doubtful"),
    [("ready", False), ("reserved", True), ("awaiting_retry", True), ("delayed", True), ("done", False)],
)
def test_others_may_be_at_work_while_an_attempt_is_out_or_a_retry_is_put_off(phase: str, is_doubtful: bool):
    assert may_be_worked_on(with_one(phase), 5, START + 1) is is_doubtful


def test_nobody_is_at_work_on_what_is_not_planned():
    assert not may_be_worked_on(taken_once(), 5, START + 1)


@guards(POISON, "if is_over or state.unproductive_takes(delivery) >= MAX_DOUBTFUL_TAKES:", rule="I1")
def test_doubt_ends_with_the_attempt_with_the_deadline_and_after_many_takes():
    assert not may_be_worked_on(with_one("reserved"), 5, START + 100)
    assert not may_be_worked_on(with_one("delayed"), 5, FAR)
    judged = [delivery for delivery in range(1, 20) if not may_be_worked_on(with_one("reserved"), delivery, START + 1)]
    assert judged[0] == MAX_DOUBTFUL_TAKES + 2


@pytest.mark.parametrize(("tag", "busy", "waits"), [("work", 2, True), ("work", 1, False), ("other", 2, False)])
def test_a_task_waits_in_the_queue_if_a_worker_with_its_tag_has_no_free_slot(tag: str, busy: int, waits: bool):
    card = WorkerCard(name="w1", tags=(tag,), slots=2, busy=busy)

    assert waits_in_queue(with_one("reserved"), [card], START + 1) is waits
    assert not waits_in_queue(with_one("done"), [card], START + 1)
