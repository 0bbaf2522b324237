"""The three requests of the guide that the design began with reach one role, one role and three, whoever plans."""

import json
from typing import Any

import pytest

from muster_agent.models.claude import Claude
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import Model
from muster_protocol.messages import Request
from muster_supervisor.planning.planner import Planned, make_plan
from muster_testing.messages_server import message, running_messages_server, text, thinking
from tests.unit.agent.teams import team

RESEARCHERS = team(
    {
        "name": "technical",
        "tags": ["worker", "research"],
        "description": "Reviews code, APIs, implementation details",
    },
    {
        "name": "market",
        "tags": ["worker", "research"],
        "description": "Analyzes market trends, competitors, industry",
    },
    {
        "name": "academic",
        "tags": ["worker", "research"],
        "description": "Finds papers, studies and scientific evidence",
    },
    supervisor={"guidelines": "Focus on accurate, well-sourced information from 2024-2025."},
)
TECHNICAL = "Analyze the API documentation for Letta's agent creation endpoint."
MARKET = "Research current trends in the AI agent framework market."
COMPREHENSIVE = "Conduct a comprehensive analysis of Letta from all perspectives."
REACHED = [
    (TECHNICAL, ["technical"], {"match_all": ["worker"], "match_some": ["technical"]}),
    (MARKET, ["market"], {"match_all": ["worker"], "match_some": ["market"]}),
    (COMPREHENSIVE, ["academic", "market", "technical"], {"match_all": ["worker", "research"], "broadcast": True}),
]


async def planned(request: str, model: Model) -> Planned:
    return await make_plan(Request(text=request), RESEARCHERS, model)


@pytest.mark.parametrize(("request_text", "roles", "_said"), REACHED)
async def test_the_offline_planner_reaches_who_knows_about_it(request_text: str, roles: list[str], _said: object):
    plan, _, warnings, _ = await planned(request_text, Offline())

    assert sorted(task.tag or "" for task in plan.tasks) == roles
    assert warnings == ()


@pytest.mark.parametrize(("request_text", "roles", "said"), REACHED)
async def test_a_model_reaches_them_with_what_the_guide_says(request_text: str, roles: list[str], said: dict[str, Any]):
    task: dict[str, Any] = {
        "id": "look",
        "description": request_text,
        "tag": "",
        "dependencies": [],
        "expected_output": "findings",
    }
    draft = {"goal": request_text, "tasks": [{**task, **said}], "aggregation": "merge", "final_instruction": ""}
    async with running_messages_server(message(thinking("who?"), text(json.dumps(draft)))) as server:
        model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url)
        plan, _, _, _ = await planned(request_text, model)
        await model.close()

    assert sorted(task.tag or "" for task in plan.tasks) == roles
    system = str(server.requests[0]["system"])
    assert "- technical (tags: technical, worker, research): Reviews code, APIs, implementation details." in system
    assert "well-sourced information" in system
