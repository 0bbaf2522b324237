"""How a plan grows by what a task spawns."""

import pytest

from muster_protocol.fold import context_of, fault_of, is_complete, pending_growth
from muster_protocol.messages import (
    Extended,
    Failure,
    GrowthLimits,
    Result,
)
from muster_protocol.plan import AtLeast, TaskSpec
from muster_protocol.unfold import unfold_over
from tests.guards import guards
from tests.unit.protocol.invariants import assert_consistent
from tests.unit.protocol.log_builder import (
    LogBuilder,
    failure,
    plan_entry,
    plan_of,
    result,
    statuses,
    task,
)
from tests.unit.protocol.test_growth import gave, over

RULES = "libs/protocol/muster_protocol/fold/growth_rules.py"
NO = Failure(error_class="bad_output", message="no such role")


def log_of(*tasks: TaskSpec, limits: GrowthLimits | None = None) -> LogBuilder:
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(*tasks)).model_copy(update={"growth": limits or GrowthLimits()}))
    return log


def spawning(task_id: str, *tasks: TaskSpec, attempt: int = 1) -> Result:
    return result(task_id, attempt).model_copy(update={"tasks": tasks or (task("page"),)})


def spawn(log: LogBuilder, task_id: str, *tasks: TaskSpec) -> None:
    """A task spawns these, and they are recorded."""
    log.run(spawning(task_id, *tasks))
    log.own(Extended(cause=f"spawned:{task_id}", add=tasks))


def fault(log: LogBuilder, cause: str, *add: TaskSpec, drop: tuple[str, ...] = ()) -> str:
    found = fault_of(log.state, Extended(cause=cause, add=add, drop=drop))
    return found.message if found else ""


def test_who_waits_for_a_task_that_spawned_others_waits_for_them_too():
    log = log_of(task("root"), task("end", "root"), task("aside"))
    log.run(spawning("root", task("x"), task("y", "x")))
    assert statuses(log.state) == {"root": "done", "end": "waiting", "aside": "ready"}
    assert (pending_growth(log.state), is_complete(log.state)) == (("spawned:root",), False)

    log.own(Extended(cause="spawned:root", add=(task("x"), task("y", "x"))))

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"root": "done", "end": "waiting", "aside": "ready", "x": "ready", "y": "waiting"}
    assert state.tasks["end"].spec.dependencies == ("root", "x", "y")
    assert [state.tasks[name].grown_by for name in ("end", "x", "y")] == ["", "spawned:root", "spawned:root"]


def test_what_was_spawned_is_given_by_its_id_and_may_be_missing():
    log = log_of(task("root"), task("end", "root"))
    spawn(log, "root", task("x"), task("y"))
    spawn(log, "x", task("x1"))
    log.run(failure("y", is_final=True), failure("x1", is_final=True))

    state = log.state
    assert_consistent(state)
    assert state.tasks["end"].spec.dependencies == ("root", "x", "x1", "y")
    assert statuses(state)["end"] == "ready"
    assert context_of(state, state.tasks["end"]) == {"root": "found", "x": "found"}


@pytest.mark.parametrize(
    ("gather", "status"),
    [(None, "ready"), ("done", "ready"), ("all", "skipped"), (AtLeast(at_least=2), "skipped")],
)
def test_how_much_of_what_was_spawned_must_be_done_is_said_by_gather(gather: object, status: str):
    log = log_of(task("root"), task("end", "root").model_copy(update={"gather": gather}))
    spawn(log, "root", task("x"), task("y"))
    log.run(failure("x", is_final=True), failure("y", is_final=True))

    assert_consistent(log.state)
    assert statuses(log.state)["end"] == status


def test_who_names_one_that_was_spawned_needs_it():
    log = log_of(task("root"), task("end", "root"))
    spawn(log, "root", task("x"), task("y", "x", "root"))
    log.run(failure("x", is_final=True))

    assert_consistent(log.state)
    assert statuses(log.state) == {"root": "done", "end": "ready", "x": "failed", "y": "skipped"}


def test_items_may_lack_what_their_template_may_lack():
    log = log_of(task("find"), over("each", "find"))
    log.run(gave("find", ["a"]).model_copy(update={"tasks": (task("x"),)}))
    log.own(Extended(cause="spawned:find", add=(task("x"),)))
    log.run(failure("x", is_final=True))

    log.own(Extended(cause="over:each", add=unfold_over(log.state.tasks["each"].spec, ["a"])))

    assert_consistent(log.state)
    assert statuses(log.state) == {"find": "done", "each": "done", "x": "failed", "each-1": "ready"}


@pytest.mark.parametrize("recorded", [Extended(cause="spawned:root"), Extended(cause="spawned:root", refused=NO)])
def test_a_task_whose_spawn_comes_to_nothing_is_done_all_the_same(recorded: Extended):
    log = log_of(task("root"), task("end", "root"))
    log.run(spawning("root"))

    log.own(recorded)

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"root": "done", "end": "ready"}
    assert state.tasks["root"].refused == recorded.refused
    row = state.outcomes()[0]
    assert row.reason == (recorded.refused and "what it spawned was not added: no such role")


def test_only_the_result_that_counts_spawns():
    log = log_of(task("root"), task("end", "root"))
    log.run(result("root"))
    log.work(spawning("root").model_copy(update={"worker": "w2"}))

    assert pending_growth(log.state) == ()
    assert statuses(log.state) == {"root": "done", "end": "ready"}


def test_a_late_success_spawns_too():
    log = log_of(task("root", max_attempts=1), task("end", "root"))
    log.run(failure("root"))
    log.work(spawning("root"))

    assert_consistent(log.state)
    assert (statuses(log.state)["end"], pending_growth(log.state)) == ("waiting", ("spawned:root",))


@guards(RULES, "if growth.kind == SPAWNED and growth.task is not None", rule="I9")
def test_what_was_spawned_may_spawn_as_deep_as_the_limit_says():
    log = log_of(task("root"), limits=GrowthLimits(depth=2))
    spawn(log, "root", task("one"))
    spawn(log, "one", task("two"))
    log.run(spawning("two", task("three")))

    assert fault(log, "spawned:two", task("three")) == "what was spawned may spawn 2 levels deep: see limits.depth"
    assert fault(log, "spawned:two") == ""
    log.own(Extended(cause="spawned:two", add=(task("three"),)))
    assert_consistent(log.state)
    assert [found.depth for found in log.state.tasks.values()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("add", "drop", "reason"),
    [
        ((task("x", "root"),), (), ""),
        ((task("x", "aside"),), (), ""),
        ((task("x", "end"),), (), "tasks would wait for each other"),
        ((task("x"), task("x")), (), "there is a task x already"),
        ((task("x").model_copy(update={"item_of": "aside"}),), (), "x would be a part of aside, which is a task"),
        ((task("x"),), ("end",), "only for a failure may tasks be dropped"),
        (tuple(task(f"x{number}") for number in range(8)), (), "8 tasks more would make 11; the request may have 10"),
    ],
)
def test_what_a_task_spawns_obeys_the_rules(add: tuple[TaskSpec, ...], drop: tuple[str, ...], reason: str):
    log = log_of(task("root"), task("end", "root"), task("aside"), limits=GrowthLimits(tasks=10))
    log.run(spawning("root"))

    assert fault(log, "spawned:root", *add, drop=drop).startswith(reason)
    assert bool(fault(log, "spawned:root", *add, drop=drop)) == bool(reason)
