"""How much of what a task depends on must be done, and what the task is given of it."""

import pytest

from muster_protocol.fold import context_of
from muster_protocol.fold.gathering import spread
from muster_protocol.messages import Output
from muster_protocol.plan import AtLeast, Gather, TaskSpec
from tests.guards import guards
from tests.unit.protocol.log_builder import LogBuilder, failure, planned, reserved, result, statuses, task

MOVES = "libs/protocol/muster_protocol/fold/moves.py"


def item(name: str, number: int = 0) -> TaskSpec:
    once = task(name, max_attempts=1)
    return once.model_copy(update={"item_of": "items", "inputs": {"item": {"n": number}}})


def gathering(gather: Gather | None, *needs: str) -> TaskSpec:
    return task("sum", *needs).model_copy(update={"gather": gather})


def ended(log: LogBuilder, outcomes: str) -> str:
    """How the gathering task stands when the items a, b, c have ended like this: + is done, - has failed."""
    for name, outcome in zip("abc", outcomes, strict=False):
        log.run(result(name) if outcome == "+" else failure(name))
    return statuses(log.state)["sum"]


@guards(MOVES, "dependent.lost += 1", rule="I5")
@pytest.mark.parametrize(
    ("gather", "outcomes", "expected"),
    [
        (None, "++", "waiting"),
        (None, "+++", "ready"),
        (None, "-+-", "ready"),
        (None, "--", "waiting"),
        (None, "---", "skipped"),
        ("done", "-+-", "ready"),
        ("all", "+-", "skipped"),
        ("all", "+++", "ready"),
        (AtLeast(at_least=2), "-+", "waiting"),
        (AtLeast(at_least=2), "-++", "ready"),
        (AtLeast(at_least=2), "--", "skipped"),
        (AtLeast(at_least=0), "---", "ready"),
    ],
)
def test_a_task_that_gathers_begins_when_all_have_ended_and_enough_are_done(
    gather: Gather | None, outcomes: str, expected: str
):
    log = planned(*map(item, "abc"), gathering(gather, "a", "b", "c"))

    assert ended(log, outcomes) == expected


def test_a_single_task_that_failed_is_a_gap_only_where_the_plan_says_so():
    cases: list[tuple[Gather | None, str]] = [(None, "skipped"), ("done", "ready")]
    for gather, expected in cases:
        single = task("s", max_attempts=1)
        log = planned(single, item("a"), item("b"), gathering(gather, "s", "a", "b"))
        log.run(result("a"), failure("b"), failure("s"))

        assert statuses(log.state)["sum"] == expected


@guards(MOVES, "dependent.lost -= may_lack(dependent, task)", rule="I4")
def test_a_task_that_was_skipped_for_want_of_items_waits_again_for_one_that_succeeds_late():
    log = planned(*map(item, "abc"), gathering(AtLeast(at_least=2), "a", "b", "c"), task("last", "sum"))
    assert ended(log, "--") == "skipped"
    assert log.state.tasks["last"].reason == "sum skipped: b failed: boom"

    log.work(result("a", worker="w2"))

    assert [statuses(log.state)[name] for name in ("sum", "last")] == ["waiting", "waiting"]
    log.run(result("c"))
    assert statuses(log.state)["sum"] == "ready"


def test_items_behind_a_task_that_failed_are_gaps_for_whoever_gathers_them():
    first = task("first", max_attempts=1)
    behind = item("a").model_copy(update={"dependencies": ("first",)})
    log = planned(first, behind, item("b"), gathering(None, "a", "b"))

    log.run(failure("first"), result("b"))

    assert statuses(log.state) == {"first": "failed", "a": "skipped", "b": "done", "sum": "ready"}
    log.work(result("first", worker="w2"))  # it was only thought to have failed
    assert statuses(log.state) == {"first": "done", "a": "ready", "b": "done", "sum": "ready"}
    log.own(reserved(("sum", 1)))
    log.run(result("a"))
    assert statuses(log.state)["sum"] == "reserved"


@guards(
    "libs/protocol/muster_protocol/fold/gathering.py",
    'part = {"item": spec.inputs.get("item"), "status": _status(needed), "output": output}',
    rule="I4",
    replace="part = output\n            if output is None: continue",
)
def test_what_is_gathered_comes_in_the_order_of_the_items_with_the_gaps():
    items = [item(name, number) for number, name in enumerate("abc", 1)]
    log = planned(*items, task("s"), gathering(None, "a", "b", "c", "s"))
    log.run(result("c"), failure("b"), result("s"), result("a"))

    context = context_of(log.state, log.state.tasks["sum"])

    assert context == {
        "items": [
            {"item": {"n": 1}, "status": "done", "output": "found"},
            {"item": {"n": 2}, "status": "failed", "output": None},
            {"item": {"n": 3}, "status": "done", "output": "found"},
        ],
        "s": "found",
    }
    assert spread(context) == {'{"n":1}': "found", '{"n":2}': "missing: failed", '{"n":3}': "found", "s": "found"}


def test_copies_of_a_broadcast_are_an_object_by_role():
    copies = [
        task(f"tell-{role}", max_attempts=1).model_copy(update={"tag": role, "copy_of": "tell"})
        for role in ("cook", "waiter")
    ]
    log = planned(*copies, gathering(None, "tell-cook", "tell-waiter"))
    log.run(failure("tell-cook"), result("tell-waiter"))

    context = context_of(log.state, log.state.tasks["sum"])

    assert context == {
        "tell": {"cook": {"status": "failed", "output": None}, "waiter": {"status": "done", "output": "found"}}
    }
    assert spread(context) == {"tell by cook": "missing: failed", "tell by waiter": "found"}
    assert statuses(log.state)["sum"] == "ready"


def test_a_copy_whose_plan_names_no_tag_is_gathered_under_its_id():
    copy = task("t-cook", max_attempts=1).model_copy(update={"copy_of": "t", "tag": None})
    log = planned(copy, task("sum", "t-cook"))
    log.run(result("t-cook"))

    assert context_of(log.state, log.state.tasks["sum"]) == {"t": {"t-cook": {"status": "done", "output": "found"}}}


@pytest.mark.parametrize(
    "output", [5, None, "text", [1, 2], [{"item": 1}], {"a": 1}, {"a": {"status": "done"}}, [None]]
)
def test_an_output_that_was_not_gathered_is_spread_as_it_is(output: Output):
    assert spread({"t": output}) == {"t": output}


def test_items_with_the_same_name_or_none_are_told_apart_by_their_place():
    parts = [{"item": name, "status": "done", "output": place} for place, name in enumerate(["x", "x", ""])]

    assert spread({"items": parts}) == {"x": 0, "x (2)": 1, "(3)": 2}


def test_a_task_that_waits_again_is_skipped_once_more_if_too_many_others_are_lost():
    log = planned(*map(item, "abc"), gathering(AtLeast(at_least=2), "a", "b", "c"))
    assert ended(log, "---") == "skipped"

    log.work(result("a", worker="w2"))

    assert statuses(log.state)["sum"] == "skipped"
