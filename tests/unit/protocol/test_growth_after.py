"""How a plan grows after a failure, and after a look at the results."""

import pytest

from muster_protocol.fold import is_complete, pending_growth
from muster_protocol.messages import Decision, Extended, GrowthLimits, Reserved, Usage
from muster_protocol.plan import TaskSpec
from tests.unit.protocol.invariants import assert_consistent
from tests.unit.protocol.log_builder import LogBuilder, failure, reserved, result, statuses, task
from tests.unit.protocol.test_growth_spawned import fault, log_of


def failed(*, limits: GrowthLimits | None = None) -> LogBuilder:
    """A log in which `a` has failed for good: `b` and `c` behind it are skipped."""
    tasks = (task("a", max_attempts=1), task("b", "a"), task("c", "b"), task("d"))
    log = log_of(*tasks, limits=limits or GrowthLimits(replacements=1))
    log.run(failure("a"))
    return log


def test_what_a_failure_skipped_may_be_replaced():
    log = failed()
    assert pending_growth(log.state) == ("failure:a",)

    log.own(Extended(cause="failure:a", add=(task("a2"), task("c2", "a2", "d")), drop=("b", "c")))

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"a": "failed", "d": "ready", "a2": "ready", "c2": "waiting"}
    assert (state.dropped, state.tasks["a"].dependents) == ({"b": "failure:a", "c": "failure:a"}, [])
    log.work(result("a"))  # too late for those that were dropped
    assert_consistent(log.state)
    assert statuses(log.state) == {"a": "done", "d": "ready", "a2": "ready", "c2": "waiting"}


def test_a_failure_that_nobody_needs_is_no_cause():
    log = log_of(task("a", max_attempts=1), task("d"), limits=GrowthLimits(replacements=1))
    log.run(failure("a"))

    assert pending_growth(log.state) == ()


def test_more_failures_than_replacements_stay_failures():
    tasks = (task("a", max_attempts=1), task("b", "a"), task("d", max_attempts=1), task("e", "d"))
    log = log_of(*tasks, limits=GrowthLimits(replacements=1))
    log.run(failure("a"), failure("d"))

    assert pending_growth(log.state) == ("failure:a",)
    log.own(Extended(cause="failure:a"))
    assert is_complete(log.state)


def test_a_late_success_needs_no_replacement():
    log = failed()

    log.work(result("a"))

    assert_consistent(log.state)
    assert (pending_growth(log.state), log.state.replacements) == ((), 0)
    log.own(Extended(cause="failure:a", add=(task("a2"),), drop=("b", "c"), usage=Usage(output_tokens=5)))
    assert statuses(log.state) == {"a": "done", "b": "ready", "c": "waiting", "d": "ready"}
    assert log.state.usage.tokens == 5


@pytest.mark.parametrize(
    ("add", "drop", "reason"),
    [
        ((), (), ""),
        ((), ("b", "c"), ""),
        ((), ("c",), ""),
        ((), ("b",), "c depends on b, which would be dropped"),
        ((), ("a",), "a cannot be dropped: it has begun or ended"),
        ((), ("x",), "no task has the id 'x'"),
        ((task("x", "c"),), ("c",), "no task has the id 'c'"),
        ((task("c"),), ("c",), "there is a task c already"),
    ],
)
def test_what_is_dropped_has_not_begun_and_nobody_waits_for_it(
    add: tuple[TaskSpec, ...], drop: tuple[str, ...], reason: str
):
    log = failed()

    assert fault(log, "failure:a", *add, drop=drop) == reason


def test_an_id_that_was_dropped_is_not_used_again():
    log = failed(limits=GrowthLimits(replacements=1, rounds=1))
    log.own(Extended(cause="failure:a", drop=("b", "c")))
    log.run(result("d"))

    assert pending_growth(log.state) == ("review:1",)
    assert fault(log, "review:1", task("c")) == "there was a task c already"


def test_after_all_has_ended_the_results_are_reviewed_until_nothing_is_added():
    log = log_of(task("a"), limits=GrowthLimits(rounds=5))
    assert pending_growth(log.state) == ()
    log.run(result("a"))
    assert (pending_growth(log.state), is_complete(log.state)) == (("review:1",), False)

    log.own(Extended(cause="review:1", add=(task("b", "a"),)))
    assert (statuses(log.state), pending_growth(log.state)) == ({"a": "done", "b": "ready"}, ())
    log.run(result("b"))
    assert pending_growth(log.state) == ("review:2",)
    log.own(Extended(cause="review:2"))

    assert_consistent(log.state)
    assert is_complete(log.state)


def test_there_are_no_more_reviews_than_rounds():
    log = log_of(task("a"), limits=GrowthLimits(rounds=1))
    log.run(result("a"))
    log.own(Extended(cause="review:1", add=(task("b"),)))
    log.run(result("b"))

    assert is_complete(log.state)


def test_a_request_that_was_cancelled_is_not_reviewed():
    log = log_of(task("a"), limits=GrowthLimits(rounds=1))
    log.own(Decision(decision="cancel", control_sequence=1, by="client/c1"))
    log.run(result("a"))

    assert is_complete(log.state)


def test_a_review_waits_while_a_late_success_lets_others_run():
    log = log_of(task("a", max_attempts=1), task("b", "a"), limits=GrowthLimits(rounds=1))
    log.run(failure("a"))
    assert pending_growth(log.state) == ("review:1",)

    log.work(result("a"))
    assert (pending_growth(log.state), is_complete(log.state)) == ((), False)
    log.run(result("b"))

    assert pending_growth(log.state) == ("review:1",)


def test_what_was_set_aside_for_a_review_is_settled_by_its_entry():
    log = log_of(task("a"), limits=GrowthLimits(rounds=1))
    log.run(result("a"))
    log.own(Reserved(attempts=(), purpose="review:1", tokens=100))
    assert log.state.tokens_set_aside == 100

    log.own(Extended(cause="review:1", usage=Usage(output_tokens=7)))

    assert (log.state.tokens_set_aside, log.state.usage.tokens) == (0, 7)


def test_a_plan_that_says_nothing_does_not_grow_by_itself():
    log = log_of(task("a", max_attempts=1), task("b", "a"))
    log.own(reserved(("a", 1)))
    log.work(failure("a"))

    assert is_complete(log.state)
