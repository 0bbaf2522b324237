"""From a request to a plan: given, unfolded, or by a model that gets one chance to correct it."""

import asyncio
import json
from typing import Any

import pytest

from muster_agent.errors import OutOfBudget
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import Ask, PlanBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_agent.team.schema import Priorities
from muster_protocol.errors import Invalid
from muster_protocol.messages import Request, Usage
from muster_supervisor.planning.planner import Unplannable, make_plan
from tests.guards import guards
from tests.unit.agent.teams import team

TEAM = team({"name": "researcher", "tags": ["research"]}, {"name": "writer"})
PLANNER = "services/supervisor/muster_supervisor/planning/planner.py"
GOOD = '{"tasks": [{"id": "a", "description": "find the height of the tower", "tag": "research"}]}'
BAD = '{"tasks": [{"id": "a", "description": "find the height of the tower", "tag": "reserch"}]}'


def request(**fields: Any) -> Request:
    return Request.model_validate({"text": "How high is the tower?", **fields})


def reply(text: str) -> Reply:
    return Reply(text, usage=Usage(input_tokens=10, output_tokens=5, model_calls=1))


async def test_an_explicit_plan_is_taken_as_it_is_without_a_model():
    given = {"tasks": [{"id": "a", "description": "find the height", "worker_type": "research"}]}

    plan, usage, _, _ = await make_plan(request(text=None, plan=given), TEAM, Scripted([]))

    assert (plan.tasks[0].tag, usage) == ("research", Usage())


@guards(PLANNER, "await asyncio.sleep(0)  # before the checks", rule="I4")
@guards(PLANNER, "await asyncio.sleep(0)  # after them", rule="I4")
@guards(PLANNER, "await asyncio.sleep(0)  # before it is recorded", rule="I4")
async def test_other_requests_get_turns_while_a_large_plan_is_checked():
    given = {"tasks": [{"id": "a", "description": "find the height", "tag": "research"}]}
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.get_running_loop().create_task(turn())
    await make_plan(request(text=None, plan=given), TEAM, Scripted([]))
    other.cancel()

    assert turns == 2, "the first turn begins before the checks, and each of the others ends one"


async def test_a_map_unfolds_into_a_task_for_each_item():
    over = {"template": {"description": "find {item}", "tag": "research"}, "items": ["x", "y"]}

    plan, _, _, _ = await make_plan(request(text=None, map=over), TEAM, Scripted([]))

    assert [task.description for task in plan.tasks] == ["find x", "find y"]


async def test_a_model_gets_one_chance_to_correct_its_plan():
    model = Scripted([reply(BAD), reply(GOOD)])

    plan, usage, _, _ = await make_plan(request(), TEAM, model)

    assert plan.tasks[0].tag == "research"
    assert usage.tokens == 30
    again = model.asked[1].brief
    assert isinstance(again, PlanBrief)
    assert again.draft == BAD
    assert "did you mean 'research'" in again.mistakes[0]


async def test_a_model_hears_all_mistakes_of_its_plan_at_once():
    task = {"id": "a", "description": "find the height of the tower"}
    draft: dict[str, Any] = {
        "tasks": [{**task, "tag": "reserch"}, {"id": "b"}, {**task, "id": "c", "tag": "writer", "dependencies": "b"}]
    }
    draft["tasks"] += [{**task, "id": "d", "tag": "writer", "dependencies": [need]} for need in ("b", "e")]
    model = Scripted([reply(json.dumps(draft)), reply(GOOD)])

    await make_plan(request(), TEAM, model)

    again = model.asked[1].brief
    assert isinstance(again, PlanBrief)
    said = "\n".join(again.mistakes)
    wanted = (
        "tasks.1.description",
        "tasks.2.dependencies",
        "did you mean 'research'",
        "2 tasks have this id",
        "id 'e'",
    )
    assert [words for words in wanted if words not in said] == []
    assert "no task has the id 'b'" not in said, "task b is there, only broken"


@pytest.mark.parametrize("draft", [BAD, "not JSON", '{"tasks": []}'])
async def test_a_second_bad_plan_is_invalid_and_what_it_cost_is_kept(draft: str):
    with pytest.raises(Unplannable) as caught:
        await make_plan(request(), TEAM, Scripted([reply(draft), reply(draft)]))

    assert isinstance(caught.value, Invalid)
    assert caught.value.usage.tokens == 30


async def test_a_plan_that_was_cut_off_is_invalid_and_what_it_cost_is_kept():
    cut = Reply('{"tasks": [', usage=Usage(input_tokens=10, output_tokens=5, model_calls=1), stop="length")

    with pytest.raises(Unplannable, match="cut off") as caught:
        await make_plan(request(), TEAM, Scripted([cut]))

    assert caught.value.usage.tokens == 15


@guards(
    "services/supervisor/muster_supervisor/planning/planner.py",
    "if wrong := errors(findings):\n        raise",
    rule="I10",
    replace="if wrong := []:\n        raise",
)
async def test_an_explicit_plan_with_mistakes_names_them_all():
    tasks = [{"id": i, "description": f"find {i} somewhere", "tag": i * 3} for i in "xy"]

    with pytest.raises(Invalid, match=r"tasks\.x\.tag: nobody has the tag 'xxx'.*tasks\.y\.tag"):
        await make_plan(request(text=None, plan={"tasks": tasks}), TEAM, Scripted([]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("conversation", "c"),
        ("replay_of", "r"),
        ("priority", "high"),
        ("budget", {"depth": 1}),
    ],
)
async def test_a_field_that_is_not_supported_is_refused_by_its_name(field: str, value: object):
    with pytest.raises(Invalid, match=f"^{field}"):
        await make_plan(request(**{field: value}), TEAM, Offline())


async def test_a_priority_is_for_teams_with_lanes():
    asked = request(
        text=None, plan={"tasks": [{"id": "x", "description": "find it", "tag": "researcher"}]}, priority="low"
    )
    with pytest.raises(Invalid, match=r"^priority: team '\w+' has no lanes; leave it out, or add `priorities: {}`"):
        await make_plan(asked, TEAM, Scripted([]))

    with_lanes = TEAM.model_copy(update={"priorities": Priorities()})
    tags = [task.tag for task in (await make_plan(asked, with_lanes, Scripted([]))).plan.tasks]
    assert tags == ["researcher"]


async def test_an_answer_schema_that_is_none_is_refused_by_its_path():
    with pytest.raises(Invalid, match=r"^answer_schema: is no JSON Schema: type: 'wrong'"):
        await make_plan(request(answer_schema={"type": "wrong"}), TEAM, Offline())


@pytest.mark.parametrize("count", [1, 2, 5, 23])
async def test_the_wanted_number_of_tasks_is_made(count: int):
    plan, _, warnings, _ = await make_plan(request(num_tasks=count), TEAM, Offline())

    assert (len(plan.tasks), warnings) == (count, ())


async def test_a_model_that_miscounts_gets_a_warning():
    _, _, warnings, _ = await make_plan(request(num_tasks=2), TEAM, Scripted([reply(GOOD), reply(GOOD)]))

    assert warnings == ("tasks: 2 tasks were asked for, the plan has 1",)


async def test_planning_itself_stays_within_the_budget():
    model = Scripted([reply(GOOD)])
    with pytest.raises(OutOfBudget):
        await make_plan(request(budget={"tokens": 150}), TEAM, model)
    assert model.asked == []

    await make_plan(request(budget={"tokens": 5000}), TEAM, model)
    asked: Ask = model.asked[0]
    assert asked.max_tokens < 5000


async def test_a_plan_that_has_too_many_dependencies_after_a_broadcast_is_refused():
    news = [{"id": f"n{n}", "description": "tell everybody", "broadcast": True} for n in range(250)]
    names = [task["id"] for task in news]
    readers = [
        {"id": f"r{n}", "description": "read it all", "tag": "writer", "dependencies": names} for n in range(250)
    ]
    request = Request.of({"plan": {"tasks": [*news, *readers]}})

    with pytest.raises(Unplannable, match=r"^plan\.tasks: 125,000 dependencies in all"):
        await make_plan(request, TEAM, Offline())


def test_a_plan_with_too_many_dependencies_is_refused():
    names = [f"a{n}" for n in range(400)]
    first = [{"id": name, "description": "find it"} for name in names]
    second = [{"id": f"b{n}", "description": "see it all", "dependencies": names} for n in range(300)]

    with pytest.raises(Invalid, match="120,000 dependencies in all; the most is 100,000"):
        Request.of({"plan": {"tasks": [*first, *second]}})
