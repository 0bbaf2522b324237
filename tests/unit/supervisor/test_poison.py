"""When a request is given up as poison, before and after its body is read."""

import pytest

from muster_protocol.fold import RequestState
from muster_protocol.workers.card import WorkerCard
from muster_supervisor.poison import (
    MAX_DOUBTFUL_TAKES,
    MAX_LONE_TAKES,
    is_suspect,
    may_be_suspect,
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
    taken,
    task,
)

POISON = "services/supervisor/muster_supervisor/poison.py"


def taken_once() -> RequestState:
    log = LogBuilder()
    log.take()
    return log.state


def taken_alone(times: int) -> RequestState:
    """Taken once, once more beside others, and then alone."""
    log = LogBuilder()
    for delivery in (1, 2):
        log.take(f"s{delivery}", delivery)
    for delivery in range(3, 3 + times):
        log.take_alone(f"s{delivery}", delivery)
    return log.state


def never_taken(alone: int) -> RequestState:
    """Nobody got past its body."""
    log = LogBuilder()
    for delivery in range(3, 3 + alone):
        log.write(taken(f"s{delivery}", delivery, alone=True), sender=f"supervisor/s{delivery}")
    return log.state


def test_a_request_is_suspect_after_two_takes_in_vain():
    assert [may_be_suspect(delivery) for delivery in (1, 2, 3)] == [False, False, True]
    assert [is_suspect(RequestState("r1"), delivery) for delivery in (1, 2, 3)] == [False, False, True]
    assert not is_suspect(taken_handed_back(), 3)


def taken_handed_back() -> RequestState:
    log = LogBuilder()
    for delivery in (1, 2):
        log.take(f"s{delivery}", delivery)
        log.own(taken(f"s{delivery}", delivery, handed_back=True))
    return log.state


@guards(POISON, "state.lone_takes_in_vain(delivery) < most", rule="I1", replace="unproductive < most")
def test_takes_beside_other_suspects_prove_nothing():
    assert not poison_reason(taken_once(), 30, is_read=False)
    assert not poison_reason(RequestState("r1"), 30, is_read=False)


@pytest.mark.parametrize("alone", range(9))
def test_a_request_that_nobody_could_read_alone_is_poison(alone: int):
    assert bool(poison_reason(never_taken(alone), 3 + alone, is_read=False)) == (alone >= MAX_LONE_TAKES)


@pytest.mark.parametrize("alone", range(9))
@pytest.mark.parametrize(("is_read", "more"), [(True, 0), (False, 1)])
def test_a_request_that_was_taken_before_may_be_read_once_more_to_be_answered_from_its_log(
    alone: int, is_read: bool, more: int
):
    state = taken_alone(alone)

    assert bool(poison_reason(state, 3 + alone, is_read=is_read)) == (alone >= MAX_LONE_TAKES + more)


def test_the_take_that_judges_does_not_count_itself():
    assert not poison_reason(taken_alone(MAX_LONE_TAKES), 2 + MAX_LONE_TAKES, is_read=True)


def test_the_reason_says_how_often_the_request_was_taken():
    reason = poison_reason(taken_alone(5), 8, is_read=True)

    assert reason == "the request was taken 7 times without any progress: poison"


def test_an_answered_request_is_never_poison():
    state = taken_alone(9)
    state.answer = answer()

    assert not poison_reason(state, 12, is_read=True)


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


@guards(POISON, "if is_over or state.lone_takes_in_vain(delivery) >= MAX_DOUBTFUL_TAKES:", rule="I1")
def test_doubt_ends_with_the_attempt_with_the_deadline_and_after_many_takes():
    assert not may_be_worked_on(with_one("reserved"), 5, START + 100)
    assert not may_be_worked_on(with_one("delayed"), 5, FAR)
    state = with_one("reserved")
    assert may_be_worked_on(state, 99, START + 1)
    state.lone_takes = frozenset(range(3, 3 + MAX_DOUBTFUL_TAKES))
    judged = [delivery for delivery in range(1, 20) if not may_be_worked_on(state, delivery, START + 1)]
    assert judged[0] == MAX_DOUBTFUL_TAKES + 3


@pytest.mark.parametrize(("tag", "busy", "waits"), [("work", 2, True), ("work", 1, False), ("other", 2, False)])
def test_a_task_waits_in_the_queue_if_a_worker_with_its_tag_has_no_free_slot(tag: str, busy: int, waits: bool):
    card = WorkerCard(name="w1", tags=(tag,), slots=2, busy=busy)

    assert waits_in_queue(with_one("reserved"), [card], START + 1) is waits
    assert not waits_in_queue(with_one("done"), [card], START + 1)
