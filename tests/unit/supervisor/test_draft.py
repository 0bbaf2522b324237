"""What a model wrote becomes a plan: everything that a plan can say, and all that is wrong at once."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster_agent.models.prompts.draft import PlanDraft, TaskDraft
from muster_protocol.plan import AtLeast, Plan
from muster_supervisor.planning.draft import read_draft

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
FIELD = st.sampled_from([*TaskDraft.model_fields, "tasks", "goal", "retry", "worker_type"])
ENTRY = st.dictionaries(FIELD, JSON, max_size=8)


def task(task_id: str, **fields: Any) -> dict[str, Any]:
    needed: dict[str, Any] = {"description": f"do {task_id}", "tag": "work", "dependencies": [], "expected_output": ""}
    return {"id": task_id, **needed, **fields}


def drafted(*tasks: dict[str, Any]) -> str:
    return json.dumps({"goal": "g", "tasks": tasks, "aggregation": "merge", "final_instruction": ""})


def plan_of(*tasks: dict[str, Any]) -> Plan:
    draft = read_draft(drafted(*tasks))
    assert draft.mistakes == []
    assert draft.plan is not None
    return draft.plan


def test_a_draft_can_say_everything_that_a_plan_can_say():
    text = drafted(
        task("ask", tag="", match_all=["worker"], match_some=["a", "b"], broadcast=True),
        task("sum", inputs='{"n": [1, 2]}', output_schema='{"type": "integer"}', dependencies=["ask"], at_least=2),
        task("any", dependencies=["ask", "sum"], gather="done", expected_output="a line"),
    )
    PlanDraft.model_validate_json(text)

    draft = read_draft(text)

    assert draft.plan is not None
    ask, total, last = draft.plan.tasks
    assert (ask.tag, ask.match_all, ask.match_some, ask.broadcast) == (None, ("worker",), ("a", "b"), True)
    assert (total.inputs, total.expected_output) == ({"n": [1, 2]}, {"type": "integer"})
    assert (total.gather, last.gather, last.expected_output) == (AtLeast(at_least=2), "done", "a line")


def test_a_task_with_items_is_a_map_and_who_depends_on_it_gets_all_of_them():
    plan = plan_of(
        task("read", description="read {item}", items=["a", "b", '{"name": "c"}']), task("end", dependencies=["read"])
    )

    assert [(each.id, each.description, each.item_of) for each in plan.tasks[:2]] == [
        ("read-1", "read a", "read"),
        ("read-2", "read b", "read"),
    ]
    assert plan.tasks[2].inputs == {"item": {"name": "c"}}
    assert plan.tasks[3].dependencies == ("read-1", "read-2", "read-3")


def test_a_plan_in_the_words_of_the_protocol_is_read_as_well():
    plan = plan_of(task("a", inputs={"n": 1}, gather={"at_least": 1}), task("b", dependencies=["a"], label="B"))

    assert read_draft(f"```json\n{plan.model_dump_json()}\n```").plan == plan


def test_all_that_is_wrong_is_said_at_once_each_with_its_place():
    draft = read_draft(
        drafted(
            task("a", inputs="{n: 1}"), task("b", items=["x"]), task("c", output_schema="[1]"), task("d", id="no id!")
        )
    )

    assert [mistake.partition(":")[0] for mistake in draft.mistakes] == [
        "tasks.0.inputs",
        "tasks.1.items",
        "tasks.2.output_schema",
        "tasks.3.id",
    ]


@given(st.text() | JSON.map(json.dumps) | st.lists(ENTRY, max_size=5).map(lambda tasks: json.dumps({"tasks": tasks})))
def test_whatever_a_model_writes_is_a_plan_or_a_list_of_mistakes(text: str):
    draft = read_draft(text)

    assert draft.mistakes or draft.plan is not None
    assert len(draft.mistakes) <= 20


def test_a_model_may_say_that_a_task_goes_over_a_list_and_which_worker_does_it():
    find = {"id": "find", "description": "find all pages", "tag": "work", "worker": "alice", "over": ""}
    each = {"id": "each", "description": "sum up {item.url}", "tag": "", "worker": "alice", "over": "find"}

    draft = read_draft(json.dumps({"goal": "g", "tasks": [find, each], "aggregation": "merge"}))

    assert draft.plan is not None
    first, second = draft.plan.tasks
    assert (first.tag, first.worker, first.over) == ("work", "alice", None)
    assert (second.tag, second.worker, second.over, second.dependencies) == (None, "alice", "find", ("find",))
