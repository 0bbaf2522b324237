"""What a model is told about a failed task, and what it may answer."""

from typing import Any

import pytest

from muster_agent.models.claude import Claude
from muster_agent.models.port import Ask, RefineBrief
from muster_agent.models.prompts.refine import MAX_FIELDS, shape_of
from muster_agent.models.refined import RefineDraft, refined
from muster_protocol.workers.role_card import RoleCard
from muster_testing.messages_server import message, running_messages_server, text

BRIEF = RefineBrief(
    "Compute the growth of sales",
    "no such column: sale_total",
    last="Compute the growth of sales from the column sale_total",
    role=RoleCard(name="analyst", tags=("analyst",), description="Computes from tables."),
    persona="You are exact.",
    tools=("query_database", "calculate"),
    expected_output={"type": "number"},
    inputs={"years": [2024, 2025], "region": {"name": "north"}},
    attempts_left=2,
)
USER = """\
<data-abcd source="task">
Compute the growth of sales
</data-abcd>

<data-abcd source="task of the failed attempt">
Compute the growth of sales from the column sale_total
</data-abcd>

<data-abcd source="error">
no such column: sale_total
</data-abcd>

The worker is analyst: Computes from tables.
Its tools: query_database, calculate
The fields of its inputs, which stay as they are: {"years": ["number", "2 in all"], "region": {"name": "text"}}

<data-abcd source="persona of the worker">
You are exact.
</data-abcd>

<data-abcd source="expected output">
{"type": "number"}
</data-abcd>

Attempts left, with the one that you describe: 2"""


async def test_the_model_sees_the_error_and_all_that_may_have_caused_it_and_answers_in_a_form():
    draft = RefineDraft(can_be_mended=True, description="Compute it from the column total", reason="the column")
    async with running_messages_server(message(text(draft.model_dump_json()))) as server:
        model = Claude("claude-sonnet-5-5", server.key, server.url)
        reply = await model.ask(Ask(BRIEF, mark="abcd"))
        await model.close()

    (request,) = server.requests
    assert request["messages"][0]["content"][0]["text"] == USER
    assert "words cannot mend it" in str(request["system"])
    schema: dict[str, Any] = request["output_config"]["format"]["schema"]
    assert set(schema["properties"]) == {"can_be_mended", "description", "reason"}
    assert refined(reply.text) == draft


async def test_what_is_not_known_is_not_mentioned():
    async with running_messages_server(message(text("better"))) as server:
        model = Claude("claude-sonnet-5-5", server.key, server.url)
        reply = await model.ask(Ask(RefineBrief("find x", "there are two x")))
        await model.close()

    said = server.requests[0]["messages"][0]["content"][0]["text"]
    assert [word for word in ("worker", "tools", "inputs", "expected") if word in said] == []
    assert refined(reply.text) == RefineDraft(can_be_mended=True, description="better", reason="")


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"a": True, "b": None, "c": []}, {"a": "true or false", "b": "nothing", "c": "a list of 0"}),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, {"a": {"b": {"c": {"d": "an object of 1 fields"}}}}),
        ({str(n): n for n in range(MAX_FIELDS + 2)}, {**{str(n): "number" for n in range(MAX_FIELDS)}, "…": "2 more"}),
    ],
)
def test_the_shape_of_inputs_has_names_and_types_and_an_end(value: object, shape: object):
    assert shape_of(value) == shape
