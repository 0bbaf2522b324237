"""Messages: what is read is checked, what is wrong is named, what is newer is passed over."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from muster_protocol.errors import Invalid
from muster_protocol.messages import MESSAGES, Failure, Request, Result, Task, Usage
from muster_protocol.plan import MAX_DEPENDENCIES, Plan
from muster_protocol.sender import Origin, Sender
from tests.unit.protocol.log_builder import result


def read(**fields: Any) -> Request:
    return Request.read(json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("body", "where", "reason"),
    [
        (b"{", "", "Invalid JSON: EOF while parsing an object"),
        (b"[]", "", "needs an object"),
        (b'{"text": 5}', "text", "needs text"),
        (b'{"plan": {"tasks": [{"id": "a b", "description": "x"}]}}', "plan.tasks.0.id", "cannot be a name: use 1 to "),
        (b'{"plan": {"tasks": [{"id": "a"}]}}', "plan.tasks.0.description", "is missing"),
        (b'{"plan": {"tasks": []}}', "plan.tasks", "needs at least one"),
        (b'{"plan": {"tasks": "a"}}', "plan.tasks", "needs a list"),
        (b'{"text": "x", "deadline_seconds": 0}', "deadline_seconds", "needs a number above 0"),
        (b'{"text": "x", "deadline_seconds": "soon"}', "deadline_seconds", "needs a number"),
        (b'{"text": "x", "deadline_seconds": 1e999}', "deadline_seconds", "needs a finite number"),
        (b'{"text": "x", "deadline_seconds": NaN}', "deadline_seconds", "needs a finite number"),
        (b'{"text": "x", "in_flight": 1.5}', "in_flight", "needs a whole number"),
        (b'{"text": "x", "approve": "perhaps"}', "approve", "needs true or false"),
        (b'{"text": "x", "budget": {"tokens": -1}}', "budget.tokens", "needs a number of at least 0"),
        (b'{"text": "x", "budget": 3}', "budget", "needs an object"),
        (b'{"text": "x", "priority": "urgent"}', "priority", "needs one of 'high', 'normal' or 'low'"),
        (b'{"map": {"template": {"description": "x", "tag": "t"}, "items": []}}', "map.items", "needs at least one"),
    ],
)
def test_i10_what_is_wrong_with_a_request_is_named_by_its_field_in_plain_words(body: bytes, where: str, reason: str):
    with pytest.raises(Invalid) as refused:
        Request.read(body)

    assert refused.value.where == where
    assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize("fields", [{}, {"text": " "}, {"text": "x", "plan": {"tasks": []}}])
def test_i10_a_request_asks_exactly_one_thing(fields: dict[str, Any]):
    with pytest.raises(Invalid):
        read(**fields)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"text": "count the sheep"}, "count the sheep"),
        ({"plan": {"goal": "sheep counted", "tasks": [{"id": "a", "description": "d"}]}}, "sheep counted"),
        ({"map": {"template": {"description": "count {item}", "tag": "t"}, "items": ["a"]}}, "count {item}"),
    ],
)
def test_a_list_of_requests_shows_what_each_asks(fields: dict[str, Any], asked: str):
    assert Request.model_validate(fields).asked == asked


def test_i10_dependencies_are_bounded_in_all_because_everybody_walks_along_each():
    names = [f"t{n}" for n in range(MAX_DEPENDENCIES // 100 + 1)]
    first = [{"id": name, "description": "d"} for name in names]

    def plan(needs: list[str]) -> dict[str, Any]:
        return {"tasks": [*first, *({"id": f"u{n}", "description": "d", "dependencies": needs} for n in range(100))]}

    assert Plan.model_validate(plan(names[1:]))
    with pytest.raises(ValidationError, match="the most is 100,000"):
        Plan.model_validate(plan(names))


def test_a_field_that_a_newer_writer_added_is_passed_over():
    assert read(text="hello", colour="green") == read(text="hello")


def test_worker_type_is_read_as_tag():
    plan = read(plan={"tasks": [{"id": "a", "description": "x", "worker_type": "math"}]}).plan

    assert plan is not None
    assert plan.tasks[0].tag == "math"


def test_a_failure_has_its_class_on_the_wire():
    failure = Failure(error_class="timeout", message="slow")

    written = failure.model_dump_json(by_alias=True)

    assert json.loads(written)["class"] == "timeout"
    assert Failure.model_validate_json(written) == failure


def test_a_message_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        setattr(result("t"), "attempt", 2)  # noqa: B010 - the checker knows that plain assignment is wrong


def test_no_two_messages_have_the_same_kind():
    kinds = [message.kind for message in MESSAGES]

    assert len(set(kinds)) == len(kinds)


def test_a_task_has_one_message_id_and_each_finisher_of_it_another():
    task = Task(
        request_id="r1",
        task_id="t",
        attempt=2,
        tag="math",
        team="default",
        description="x",
        timeout_seconds=1,
        deadline=1,
        reserved_at=1,
        reserved_sequence=1,
    )
    finished = [result("t", 2), result("t", 2, worker="w2"), result("t", 2, delivery=2)]

    origin = Origin("r1", Sender("worker", "w1"))
    by_owner = Origin("r1", Sender("supervisor", "s1"), term=4)
    ids = {found.id_for(origin) for found in finished}
    assert task.id_for(by_owner) == "r1.t.2"
    assert len({*ids, finished[0].id_for(by_owner)}) == 4


def test_costs_add_up():
    one = Usage(input_tokens=1, output_tokens=2, usd=0.5, model_calls=1)

    assert one + one == Usage(input_tokens=2, output_tokens=4, usd=1.0, model_calls=2)
    assert (one + one).tokens == 6


def test_a_result_needs_a_known_status():
    body = json.loads(result("t").model_dump_json()) | {"status": "maybe"}

    with pytest.raises(Invalid) as refused:
        Result.read(json.dumps(body).encode())

    assert refused.value.where == "status"
