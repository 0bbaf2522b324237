"""A failure is a presumption: a success that a worker stores later counts, and what followed from the failure ends."""

import pytest

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import settled_by
from muster_protocol.messages import ResultStatus
from tests.guards import guards
from tests.unit.protocol.log_builder import (
    REQUEST,
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


def given_up(log: LogBuilder, task_id: str, attempt: int = 1) -> None:
    """Reserve an attempt, and let its owner write that its time is over."""
    log.own(reserved((task_id, attempt)))
    log.own(failure(task_id, attempt).model_copy(update={"worker": ""}))


@guards(
    "libs/protocol/muster_protocol/fold/counting.py",
    "if status is ResultStatus.DONE and not by_owner:",
    rule="I4",
)
@pytest.mark.parametrize("then", ["awaiting_retry", "delayed", "reserved"])
def test_a_success_that_comes_after_its_owner_gave_the_attempt_up_ends_the_task(then: str):
    log = planned(task("t"), task("u", "t"))
    given_up(log, "t")
    if then != "awaiting_retry":
        log.own(revision("t", 2))
    if then == "reserved":
        log.own(reserved(("t", 2)))
    assert statuses(log.state)["t"] == then

    log.work(result("t", 1))

    state = log.state
    assert statuses(state) == {"t": "done", "u": "ready"}
    assert state.tasks["t"].result == result("t", 1)
    assert (state.in_flight, list(state.overtaken)) == (0, ["t"] if then == "reserved" else [])
    assert (state.awaiting_retry, state.expired, state.dispatch_unconfirmed) == ({}, {}, {})


def test_what_was_skipped_for_a_task_that_is_done_after_all_waits_again():
    log = planned(task("t", max_attempts=1), task("u", "t"), task("v", "u"))
    given_up(log, "t")
    assert statuses(log.state) == {"t": "failed", "u": "skipped", "v": "skipped"}

    log.work(result("t", 1))

    assert statuses(log.state) == {"t": "done", "u": "ready", "v": "waiting"}
    assert log.state.open_tasks == 2


@guards(
    "libs/protocol/muster_protocol/fold/moves.py",
    "skip_if_lost(state, task, recovered)",
    rule="I4",
)
def test_what_another_failure_stands_before_stays_skipped_and_names_that_one():
    log = planned(
        *(task(name, max_attempts=1) for name in ("t", "other")),
        task("behind", "other"),
        task("u", "t", "behind"),
        task("v", "u"),
    )
    given_up(log, "t")
    log.run(failure("other", message="a step skipped: no route"))

    log.work(result("t", 1))

    tasks = log.state.tasks
    assert statuses(log.state) == {
        "t": "done",
        "other": "failed",
        "behind": "skipped",
        "u": "skipped",
        "v": "skipped",
    }
    assert tasks["u"].reason == "behind skipped: other failed: a step skipped: no route"
    assert tasks["v"].reason == "u skipped: other failed: a step skipped: no route"


@guards("libs/protocol/muster_protocol/fold/counting.py", "if is_done:", rule="I2")
def test_a_success_that_comes_second_is_superseded_and_costs():
    log = planned(task("t"))
    given_up(log, "t")
    log.own(revision("t", 2))
    log.own(reserved(("t", 2)))
    log.work(result("t", 1, tokens=5))

    log.work(result("t", 2, worker="w2", tokens=7))

    state = log.state
    assert state.tasks["t"].result == result("t", 1, tokens=5)
    assert [found.worker for found in state.tasks["t"].superseded] == ["w2"]
    assert (state.usage.tokens, state.uncounted) == (12, 1)


def test_an_attempt_that_is_reserved_while_a_late_success_is_stored_does_not_begin():
    log = planned(task("t"))
    given_up(log, "t")
    log.own(revision("t", 2))
    log.work(result("t", 1))

    log.own(reserved(("t", 2)))

    assert len(log.state.tasks["t"].attempts) == 1
    assert not log.state.overtaken


def test_after_the_answer_a_late_success_changes_nothing_but_the_cost():
    log = planned(task("t", max_attempts=1))
    given_up(log, "t")
    log.own(answer())

    log.work(result("t", 1, tokens=3))

    assert statuses(log.state) == {"t": "failed"}
    assert log.state.usage.tokens == 3


def test_what_an_owner_gave_up_is_not_begun_again():
    log = planned(task("t"))
    given_up(log, "t")

    assert settled_by(log.entries[2:], AttemptId(REQUEST, "t", 1)) is log.entries[-1]


@guards(
    "libs/protocol/muster_protocol/fold/counting.py",
    "case _ if by_owner and term not in (None, entry.term):",
    rule="I2",
    replace="case _ if False:",
)
def test_what_a_former_owner_gives_up_is_still_to_be_done():
    log = planned(task("t"))
    former = log.term
    log.own(reserved(("t", 1)))
    log.take("s2", 2)
    log.own(failure("t"), term=former)

    assert settled_by(log.entries[2:], AttemptId(REQUEST, "t", 1)) is None
    assert statuses(log.state) == {"t": "reserved"}


def test_what_was_stopped_or_failed_before_leaves_the_next_attempt_to_do():
    log = planned(task("t"))
    given_up(log, "t")
    log.own(revision("t", 2))
    log.own(reserved(("t", 2)))
    reservation = len(log.entries) - 1
    log.work(failure("t", 1))
    log.work(result("t", 2, worker="w2").model_copy(update={"status": ResultStatus.CANCELLED}))

    assert settled_by(log.entries[reservation:], AttemptId(REQUEST, "t", 2)) is None
