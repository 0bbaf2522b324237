"""What people say about a task by which a plan is to grow, or whose role was just chosen."""

from muster_protocol.fold import context_of, is_complete, pending_growth
from muster_protocol.messages import Extended, GrowthLimits, Reservation, Reserved, Usage
from muster_protocol.sender import Origin, Sender
from tests.guards import guards
from tests.unit.protocol.invariants import assert_consistent
from tests.unit.protocol.log_builder import LogBuilder, failure, order, planned, result, statuses, task
from tests.unit.protocol.test_growth_spawned import log_of

RULES = "libs/protocol/muster_protocol/fold/rules.py"
MOVES = "libs/protocol/muster_protocol/fold/moves.py"


def failed(*, replacements: int = 2) -> LogBuilder:
    """`a` has failed for good, `b` was skipped for it, and others are looked for in its place."""
    log = log_of(task("a", max_attempts=1), task("b", "a"), task("d"), limits=GrowthLimits(replacements=replacements))
    log.run(failure("a"))
    return log


def test_who_tries_a_task_again_needs_no_replacement():
    for kind in ("retry", "reassign"):
        log = failed()
        assert pending_growth(log.state) == ("failure:a",)

        log.own(order(kind, "a", 2))

        assert_consistent(log.state)
        assert (pending_growth(log.state), log.state.replacements) == ((), 0)
        log.own(Extended(cause="failure:a", add=(task("a2"),), drop=("b",), usage=Usage(output_tokens=5)))
        assert statuses(log.state) == {"a": "ready", "b": "waiting", "d": "ready"}
        assert log.state.usage.output_tokens == 5
        log.run(result("a", 2), result("b"), result("d"))
        assert is_complete(log.state)


@guards(MOVES, "if _lose(state, task) and not task.is_cause", rule="I4", replace="if _lose(state, task)")
def test_a_task_that_is_tried_again_and_fails_again_is_no_second_cause():
    """Its entry would have the id of the first, and the broker would drop it: the request would wait in vain."""
    log = failed()
    log.own(Extended(cause="failure:a"))
    log.own(order("retry", "a", 2))

    log.run(failure("a", 2))

    assert_consistent(log.state)
    assert statuses(log.state) == {"a": "failed", "b": "skipped", "d": "ready"}
    assert pending_growth(log.state) == ()
    log.run(result("d"))
    assert is_complete(log.state)


@guards(RULES, "_is_outdated(task, reservation) or ", rule="I2", replace="")
def test_a_role_that_was_chosen_before_a_person_gave_the_task_to_another_does_not_get_it():
    log = planned(task("a").model_copy(update={"roles": ("work", "third")}))
    log.own(order("reassign", "a", 1))

    log.own(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60, role="third"),)))

    assert statuses(log.state) == {"a": "ready"}
    log.own(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60),)))
    assert (statuses(log.state), log.state.tasks["a"].queue) == ({"a": "reserved"}, "other")


def test_what_was_not_reserved_may_be_reserved_again_under_the_same_term():
    body = Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60),))
    origin = Origin("r1", Sender("supervisor", "s1"), 7)

    assert body.id_for(origin) == "r1.reserved.7.a.1"
    assert body.id_for(origin._replace(nonce="aa")) != body.id_for(origin._replace(nonce="bb"))


def test_two_copies_of_a_broadcast_that_one_role_has_done_are_both_there():
    copies = [task(f"t-{role}").model_copy(update={"tag": role, "copy_of": "t"}) for role in ("cook", "waiter")]
    log = planned(*copies, task("sum", "t-cook", "t-waiter"))
    log.own(order("reassign", "t-cook", 1, to="waiter"))
    log.run(result("t-cook").model_copy(update={"output": "hot"}), result("t-waiter"))

    assert context_of(log.state, log.state.tasks["sum"]) == {
        "t": {"waiter": {"status": "done", "output": "hot"}, "t-waiter": {"status": "done", "output": "found"}}
    }
