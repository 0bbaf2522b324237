"""How a plan grows: a task goes over the list that another one gave."""

import pytest

from muster_protocol.errors import Invalid
from muster_protocol.fold import context_of, fault_of, is_complete, pending_growth
from muster_protocol.messages import Extended, Failure, GrowthLimits, Result
from muster_protocol.plan import AtLeast, TaskSpec
from muster_protocol.unfold import unfold_over
from tests.guards import guards
from tests.unit.protocol.invariants import assert_consistent
from tests.unit.protocol.log_builder import LogBuilder, failure, plan_entry, plan_of, result, statuses, task

GROWTH = "libs/protocol/muster_protocol/fold/growth.py"


def over(task_id: str, source: str, *needs: str) -> TaskSpec:
    return TaskSpec(
        id=task_id, description=f"{task_id} {{item}}", tag="work", over=source, dependencies=(source, *needs)
    )


def gave(task_id: str, output: object) -> Result:
    return result(task_id).model_copy(update={"output": output})


def growing(*more: TaskSpec, items: list[str] | None = None, limits: GrowthLimits | None = None) -> LogBuilder:
    """A log in which `find` has given a list and `each` is to go over it."""
    log = LogBuilder()
    log.take()
    entry = plan_entry(plan_of(task("find"), over("each", "find"), *more))
    log.own(entry.model_copy(update={"growth": limits or GrowthLimits()}))
    log.run(gave("find", ["a", "b"] if items is None else items))
    return log


def extended(log: LogBuilder, task_id: str = "each", *, count: int = 2) -> Extended:
    spec = log.state.tasks[task_id].spec
    return Extended(cause=f"over:{task_id}", add=unfold_over(spec, ["a", "b", "c", "d"][:count]))


def test_a_task_that_goes_over_a_list_waits_for_it_and_then_for_what_it_becomes():
    log = growing(task("end", "each"))
    assert statuses(log.state) == {"find": "done", "each": "growing", "end": "waiting"}
    assert pending_growth(log.state) == ("over:each",)

    log.own(extended(log))

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"find": "done", "each": "done", "end": "waiting", "each-1": "ready", "each-2": "ready"}
    assert [state.tasks[name].description for name in ("each-1", "each-2")] == ["each a", "each b"]
    assert (pending_growth(state), is_complete(state)) == ((), False)


def test_who_depends_on_it_gathers_its_items_in_their_order():
    log = growing(task("end", "each"))
    log.own(extended(log))

    log.run(failure("each-2", is_final=True), gave("each-1", 1))

    state = log.state
    assert statuses(state)["end"] == "ready"
    assert context_of(state, state.tasks["end"]) == {
        "each": [{"item": "a", "status": "done", "output": 1}, {"item": "b", "status": "failed", "output": None}]
    }


def test_nothing_to_go_over_is_done_with_an_empty_list():
    log = growing(task("end", "each"), items=[])
    log.own(Extended(cause="over:each"))

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"find": "done", "each": "done", "end": "ready"}
    assert context_of(state, state.tasks["end"]) == {"each": []}
    assert state.tasks["each"].output == []


def test_a_refusal_fails_the_task_and_skips_what_waits_for_it():
    log = growing(task("end", "each"))

    log.own(Extended(cause="over:each", refused=Failure(error_class="bad_output", message="it gave no list")))

    state = log.state
    assert_consistent(state)
    assert statuses(state) == {"find": "done", "each": "failed", "end": "skipped"}
    assert state.tasks["end"].reason == "each failed: it gave no list"
    assert is_complete(state)


@guards(GROWTH, "if body.cause not in state.growing:", rule="I2")
def test_i2_the_first_growth_of_a_cause_counts():
    log = growing(task("end", "each"))
    first = extended(log, count=1)
    log.own(first)

    log.own(extended(growing(), count=3))

    assert [name for name in log.state.tasks if name.startswith("each-")] == ["each-1"]


def test_i2_what_a_former_owner_grows_is_ignored():
    log = growing()
    former = log.term
    log.take("s2", 2)

    log.own(extended(log), term=former)

    assert pending_growth(log.state) == ("over:each",)


def faults(log: LogBuilder, *add: TaskSpec) -> str:
    fault = fault_of(log.state, Extended(cause="over:each", add=add))
    return fault.message if fault else ""


def item(task_id: str, *needs: str) -> TaskSpec:
    return task(task_id, *needs).model_copy(update={"item_of": "each"})


@pytest.mark.parametrize(
    ("add", "fault"),
    [
        ((item("x"),), ""),
        ((item("x"), item("x")), "there is a task x already"),
        ((item("find"),), "there is a task find already"),
        ((item("x", "nobody"),), "no task has the id 'nobody'"),
        ((item("x", "y"), item("y", "x")), "tasks would wait for each other"),
        ((item("x", "end"),), "tasks would wait for each other"),
        ((item("x", "behind"),), "tasks would wait for each other"),
        ((item("x", "aside"),), ""),
        ((task("x"),), "not all tasks are items of each"),
        ((item("x").model_copy(update={"tag": None}),), "x has no tag"),
        (tuple(item(f"x{n}") for n in range(6)), "6 tasks more would make 11; the request may have 10"),
    ],
)
def test_what_the_log_alone_forbids_is_refused_by_everybody(add: tuple[TaskSpec, ...], fault: str):
    log = growing(task("end", "each"), task("behind", "end"), task("aside"), limits=GrowthLimits(tasks=10))
    assert faults(log, *add).startswith(fault)
    assert bool(fault) == bool(faults(log, *add))

    log.own(Extended(cause="over:each", add=add))

    state = log.state
    assert_consistent(state)
    assert statuses(state)["each"] == ("failed" if fault else "done")
    assert pending_growth(state) == ()


def test_a_list_with_fewer_items_than_somebody_needs_is_refused():
    log = growing(task("end", "each").model_copy(update={"gather": AtLeast(at_least=3)}))

    assert faults(log, item("x")) == "end needs at least 3 to be done, and there are 1"


def test_a_late_list_revives_what_was_skipped_for_it():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("find", max_attempts=1), over("each", "find"), task("end", "each"))))
    log.run(failure("find"))
    assert statuses(log.state) == {"find": "failed", "each": "skipped", "end": "skipped"}

    log.work(gave("find", ["a"]))
    log.own(extended(log, count=1))

    assert_consistent(log.state)
    assert statuses(log.state) == {"find": "done", "each": "done", "end": "waiting", "each-1": "ready"}


def test_items_go_over_items():
    log = growing(over("again", "each"), task("end", "again"))
    log.own(extended(log))
    log.run(gave("each-1", "x"), gave("each-2", "y"))

    state = log.state
    assert pending_growth(state) == ("over:again",)
    given = context_of(state, state.tasks["again"])["each"]
    log.own(Extended(cause="over:again", add=unfold_over(state.tasks["again"].spec, given)))

    assert_consistent(log.state)
    assert log.state.tasks["end"].spec.dependencies == ("again", "again-1", "again-2")


def test_an_item_waits_for_what_else_its_template_depends_on():
    spec = over("each", "find", "other").model_copy(update={"gather": "done", "expected_output": "about {item}"})

    first, second = unfold_over(spec, [{"name": "x"}, {"name": "y"}])

    assert (first.id, first.label, first.dependencies, first.gather) == ("each-1", "x", ("other",), "done")
    assert (second.inputs, second.over, second.item_of) == ({"item": {"name": "y"}}, None, "each")
    assert second.expected_output == 'about {"name":"y"}'


def test_a_field_that_an_item_lacks_is_named():
    spec = over("each", "find").model_copy(update={"description": "open {item.url}"})

    with pytest.raises(Invalid, match=r"find.output.1: the template asks for {item.url}, but there is only name"):
        unfold_over(spec, [{"url": "a"}, {"name": "b"}])
