"""Whose word settles an attempt, and what a result has to be to count."""

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import is_counted, is_stopped, settled_by
from muster_protocol.messages import ResultStatus
from tests.unit.protocol.log_builder import (
    REQUEST,
    answer,
    failure,
    planned,
    reserved,
    result,
    taken,
    task,
)

FIRST = AttemptId(REQUEST, "t", 1)
STOPPED = result("t").model_copy(update={"status": ResultStatus.CANCELLED})


def test_of_two_results_of_an_attempt_only_a_workers_success_counts_after_a_failure():
    for by_owner in (False, True):
        assert is_counted(ResultStatus.DONE, by_owner=by_owner, before=ResultStatus.FAILED, is_done=False) is (
            not by_owner
        )
        assert not is_counted(ResultStatus.FAILED, by_owner=by_owner, before=ResultStatus.FAILED, is_done=False)


def test_only_a_worker_is_stopped_and_only_if_it_says_so():
    assert is_stopped("worker/w1/work", STOPPED)
    assert not is_stopped("worker/w1/work", failure("t"))
    assert not is_stopped("supervisor/s1", STOPPED)  # an owner's word settles the attempt


def test_the_success_of_a_worker_settles_an_attempt_whoever_owns_the_request():
    log = planned(task("t"))
    log.own(reserved(("t", 1)))
    log.take("s2", 2)
    log.work(result("t"))

    assert settled_by(log.entries[2:], FIRST) is log.entries[-1]


def test_a_worker_that_says_taken_or_reserved_begins_no_term():
    log = planned(task("t"))
    log.own(reserved(("t", 1)))
    log.write(taken("w1"), sender="worker/w1/work")
    log.write(reserved(("t", 2)), sender="worker/w1/work")
    log.own(failure("t"))

    assert settled_by(log.entries[2:], FIRST) is log.entries[-1]


def test_a_message_that_is_handed_back_unread_ends_no_term():
    log = planned(task("t"))
    log.own(reserved(("t", 1)))
    log.write(taken("s2", 2, handed_back=True), sender="supervisor/s2")
    log.own(answer())

    assert settled_by(log.entries[2:], FIRST) is log.entries[-1]
