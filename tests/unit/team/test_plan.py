"""A plan that is written task by task in Python."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster import Invalid, Plan
from muster.plan import KNOWN
from muster_agent.spawning import FIELDS
from muster_protocol.plan import is_acyclic


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 30), max_size=4)), min_size=1, max_size=30))
def test_whatever_waits_for_what_was_added_before_has_ids_of_its_own_and_no_cycle(tasks: list[tuple[bool, list[int]]]):
    plan, added = Plan(), list[str]()
    for is_named, needs in tasks:
        after = sorted({added[need % len(added)] for need in needs}) if added else []
        name = f"t{len(added) + 2}"
        if is_named and name not in added:
            added.append(plan.task("Do it", tag="any", after=after, id=name))
        else:
            added.append(plan.task("Do it", tag="any", after=after))

    assert len(set(added)) == len(tasks)
    assert [task.id for task in plan.spec.tasks] == added
    assert is_acyclic(plan.spec)


def test_every_field_that_a_person_may_give_a_task_can_be_given_here():
    assert (KNOWN | {"description", "dependencies", "worker_type"}) - {"after"} == set(FIELDS)


def test_a_task_says_what_the_plan_of_a_file_says():
    plan = Plan("What is it worth?", aggregation="select")
    look = plan.task("Look", tag="stock", inputs={"article": "apples"})
    each = plan.task("Each of {item}", tag="till", over=look, after=look)

    assert (look, each) == ("t1", "t2")
    assert plan.spec.model_dump(exclude_defaults=True) == {
        "goal": "What is it worth?",
        "aggregation": "select",
        "tasks": (
            {"id": "t1", "description": "Look", "tag": "stock", "inputs": {"article": "apples"}},
            {"id": "t2", "description": "Each of {item}", "tag": "till", "over": "t1", "dependencies": ("t1",)},
        ),
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"after": ["t0"]}, "task.after: no task 't0' was added before; known: t1"),
        ({"over": "later"}, "task.after: no task 'later' was added before"),
        ({"dependencies": ["t1"]}, "task: a task has no 'dependencies'; known: after, broadcast"),
        ({"tga": "till"}, "task: a task has no 'tga'; did you mean 'tag'?"),
        ({"id": "t1"}, "task.id: a second task with the id 't1'; take another"),
        ({"timeout_seconds": 0}, "task.timeout_seconds: "),
    ],
)
def test_a_mistake_is_said_where_it_is_written(fields: dict[str, Any], reason: str):
    plan = Plan()
    plan.task("Look", tag="stock")
    with pytest.raises(Invalid) as refused:
        plan.task("Add up", **fields)

    assert str(refused.value).startswith(reason)


def test_a_plan_without_a_task_is_said_to_be_one():
    with pytest.raises(Invalid, match=r"the plan has no task; add one with plan\.task"):
        _ = Plan().spec
