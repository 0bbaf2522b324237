"""The offline model: its plans pass the lint, and the numbers in its texts come from the tools."""

import asyncio
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster_agent.functions import Context
from muster_agent.models.offline.model import Offline
from muster_agent.models.offline.plan import plan_by_rules, steps_of
from muster_agent.models.offline.subjects import subjects
from muster_agent.models.port import Ask, ComposeBrief, PlanBrief, RefineBrief, WorkBrief
from muster_agent.team.schema import Team
from muster_protocol.errors import Terminal
from muster_protocol.messages import Output, Request, ResultStatus
from muster_protocol.plan import Plan
from muster_protocol.workers.role_card import RoleCard
from muster_supervisor.planning.lint import lint
from muster_supervisor.planning.planner import make_plan
from muster_worker.executor import Executor
from tests.unit.agent.teams import cloud, task, team

QUESTION = "Compare AWS, Azure and Google Cloud: price, storage, regions and uptime"
NAMES = st.text(alphabet=string.ascii_letters + string.digits + "_-", min_size=1, max_size=20)
SCRAPS = "Compare AWS Azure and , vs or : . ; Google Cloud the of report analyse pears Apples 3 ? for it & versus"
WORDS = st.sampled_from(SCRAPS.split())
TEXTS = (st.lists(WORDS, min_size=1, max_size=25).map(" ".join) | st.text(min_size=1)).filter(str.strip)
DESCRIPTIONS = st.sampled_from(["", "Finds facts", "Analyses data", "Writes reports", "Reviews texts", "Sings"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (QUESTION, ["AWS", "Azure", "Google Cloud"]),
        ("Compare AWS, Azure, and Google Cloud and recommend one", ["AWS", "Azure", "Google Cloud"]),
        ("AWS vs. Azure", ["AWS", "Azure"]),
        ("Google Cloud versus AWS for a small team", ["Google Cloud", "AWS"]),
        ("Which is better, Rust or Go?", ["Rust", "Go"]),
        ("Compare apples, sweet pears and plums by price", ["apples", "sweet pears", "plums"]),
        ("Write a report on climate change and its effects", []),
        ("Summarise the pros and cons of tea", []),
        ("What is the capital of France?", []),
    ],
)
def test_subjects_are_what_a_request_lists(text: str, found: list[str]):
    assert subjects(text) == found


@settings(max_examples=200)
@given(
    TEXTS,
    st.lists(st.tuples(NAMES, DESCRIPTIONS), min_size=1, max_size=12, unique_by=lambda role: role[0]),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 40),
)
def test_every_offline_plan_lints_clean_and_has_the_wanted_number_of_tasks(
    text: str, roles: list[tuple[str, str]], num_tasks: int | None, most: int | None
):
    found = team(*({"name": name, "description": description} for name, description in roles))

    plan = plan_by_rules(PlanBrief(text, found.cards, num_tasks=num_tasks, max_tasks=most))

    assert [finding for finding in lint(plan, found) if finding.level == "error"] == []
    assert num_tasks is None or len(plan.tasks) == min(num_tasks, most or num_tasks)
    assert most is None or len(plan.tasks) <= most


async def test_the_example_becomes_a_graph_of_eight_tasks_over_three_roles():
    plan, usage, warnings, _ = await make_plan(Request(text=QUESTION), cloud(), Offline())
    needs = {task.id: set(task.dependencies) for task in plan.tasks}

    assert len(plan.tasks) == 8
    assert {task.tag for task in plan.tasks} == {"researcher", "analyst", "writer"}
    assert needs["analyse-azure"] == {"research-azure"}
    assert needs["compare"] == {"analyse-aws", "analyse-azure", "analyse-google-cloud"}
    assert "compare" in needs["report"]
    assert [task_id for task_id, ids in needs.items() if not ids] == [
        "research-aws",
        "research-azure",
        "research-google-cloud",
    ]
    assert (usage.tokens, warnings) == (0, ())


def test_a_request_without_a_list_goes_through_the_roles_in_the_order_of_their_work():
    roles = (
        RoleCard(name="writer", tags=("writer",), description=""),
        RoleCard(name="scout", tags=("scout",), description=""),
        RoleCard(name="finder", tags=("finder",), description=""),
    )

    plan = plan_by_rules(PlanBrief("What is new?", roles))

    assert [(task.tag, task.dependencies) for task in plan.tasks] == [
        ("scout", ()),
        ("finder", ()),
        ("writer", ("research", "research-2")),
    ]


def test_a_team_of_one_gets_one_task_with_the_text_of_the_request():
    plan = plan_by_rules(PlanBrief("Compare A, B and C", (RoleCard(name="solo", tags=("solo",), description=""),)))

    assert [(task.tag, task.description) for task in plan.tasks] == [("solo", "Compare A, B and C")]


async def carried_out(plan: Plan, found: Team) -> dict[str, Output]:
    executor = Executor(found, {})
    outputs: dict[str, Output] = {}
    for spec in plan.tasks:
        context = {need: outputs[need] for need in spec.dependencies}
        assert spec.tag
        outcome = await executor.run(
            task(spec.tag, spec.description, expected_output=spec.expected_output, context=context), Context(context)
        )
        assert outcome.status is ResultStatus.DONE, outcome.error
        assert outcome.tool_calls
        assert all(call["error"] is None for call in outcome.tool_calls)
        outputs[spec.id] = outcome.output
    return outputs


async def test_the_report_has_the_numbers_of_the_sample_and_says_that_no_llm_wrote_it():
    found = cloud()
    plan, _, _, _ = await make_plan(Request(text=QUESTION), found, Offline())

    outputs = await carried_out(plan, found)

    report = outputs["report"]
    assert "vCPU USD per hour: Google Cloud has the lowest; spread 11.1 %" in report
    assert "| … USD in a month of 730 hours | 30.37 | 31.54 | 28.4 |" in report
    assert "[aws.md]" in report
    assert "SAMPLE DATA" in report
    assert all("not an LLM" in output for output in outputs.values())
    assert outputs == await carried_out(plan, found)


async def test_every_number_of_the_comparison_is_in_a_tool_output_or_a_unit():
    found = cloud()
    plan, _, _, _ = await make_plan(Request(text=QUESTION), found, Offline())
    compared = (await carried_out(plan, found))["compare"]
    assert found.tables is not None
    tables = "".join(path.read_text() for path in found.tables.glob("*.csv"))
    values = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", tables)}
    computed = {11.1, 10.2, 10.6, 26.4, 87.9, 15.2, 150.0, 30.37, 31.54, 28.4, 12.96, 21.6, 8.64}
    units = {730.0, 30.0}

    assert {float(number) for number in re.findall(r"\d+(?:\.\d+)?", compared)} <= values | computed | units


async def test_without_material_the_text_says_that_nothing_was_found():
    reply = await Offline().ask(Ask(WorkBrief("Tell me about Mars")))

    assert "Nothing was found" in reply.text


async def test_a_refined_description_has_the_task_and_only_the_last_error():
    first = (await Offline().ask(Ask(RefineBrief("find x", "error one")))).text
    second = (await Offline().ask(Ask(RefineBrief(first, "error two")))).text

    assert "find x" in second
    assert "error two" in second
    assert "error one" not in second


async def test_rules_do_not_compose():
    with pytest.raises(Terminal, match="merged without a model"):
        await Offline().ask(Ask(ComposeBrief("g", {"a": "text"})))


async def test_the_pause_is_made_for_each_answer():
    loop = asyncio.get_running_loop()
    started = loop.time()
    await Offline(seconds_per_answer=0.05).ask(Ask(RefineBrief("a", "b")))

    assert loop.time() - started >= 0.04


PORTS = (
    RoleCard(name="finder", tags=("finder",), description="Finds facts about harbours and ships"),
    RoleCard(name="counter", tags=("counter",), description="Computes figures from tables"),
    RoleCard(name="writer", tags=("writer",), description="Writes reports"),
)


def test_steps_that_follow_each_other_become_a_chain_of_tasks_that_say_only_their_own():
    text = "First find the three largest ports of Europe, then compute their yearly growth; finally write a summary."

    plan = plan_by_rules(PlanBrief(text, PORTS))

    assert [(task.tag, task.description, task.dependencies) for task in plan.tasks] == [
        ("finder", "find the three largest ports of Europe", ()),
        ("counter", "compute their yearly growth", ("gather",)),
        ("writer", "write a summary", ("analyse",)),
    ]


@pytest.mark.parametrize(
    "text",
    ["What has changed since then in the port of Oslo?", "If a port is closed, then say so", "Say what came then"],
)
def test_a_then_that_is_no_step_makes_no_chain(text: str):
    assert steps_of(text) == [text]


def test_a_list_becomes_a_map_and_a_task_that_reads_all_of_it():
    plan = plan_by_rules(PlanBrief("How deep is each of these harbours?\n- Oslo\n- Kiel\n- Turku", PORTS))

    assert [task.description for task in plan.tasks[:2]] == [
        "How deep is each of these harbours?: Oslo",
        "How deep is each of these harbours?: Kiel",
    ]
    assert {task.tag for task in plan.tasks[:3]} == {"finder"}
    assert (plan.tasks[3].tag, len(plan.tasks[3].dependencies)) == ("writer", 3)


def test_a_question_that_one_role_knows_most_about_is_one_task():
    plan = plan_by_rules(PlanBrief("Which ships are in the harbours of Norway?", PORTS))

    assert [(task.tag, task.description) for task in plan.tasks] == [
        ("finder", "Which ships are in the harbours of Norway?")
    ]


def test_a_list_of_ten_thousand_is_planned_in_bounded_time():
    text = "How deep is each harbour?\n" + "\n".join(f"- harbour number {number}" for number in range(9_999))

    plan = plan_by_rules(PlanBrief(text, PORTS))
    fewer = plan_by_rules(PlanBrief(text, PORTS, num_tasks=7))

    assert (len(plan.tasks), len(fewer.tasks)) == (10_000, 7)
