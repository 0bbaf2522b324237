"""Plans that cannot work are refused with a reason; routing leaves one concrete tag per task."""

import json
import math
import random
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Budget
from muster_protocol.plan import Plan, cycle_in
from muster_supervisor.planning.lint import errors, lint
from muster_supervisor.planning.repeated import nearly_same_work, same_work
from muster_supervisor.planning.routing import route
from tests.unit.agent.teams import team

TEAM = team(
    {"name": "researcher", "tags": ["research", "fast"]},
    {"name": "analyst", "tags": ["analysis", "fast"], "timeout_seconds": 60},
    {"name": "writer", "tags": ["writing"]},
    workers=["alice", "bob"],
)
DEEP: list[Any] = json.loads("[" * 195 + "]" * 195)  # as deep as a request may have it, and a task may not
FIVE = {"at_least": 5}


def plan(*tasks: dict[str, Any]) -> Plan:
    return Plan.model_validate(
        {"tasks": [{"description": f"count the sheep in meadow {n}", **t} for n, t in enumerate(tasks)]}
    )


@pytest.mark.parametrize(
    ("tasks", "where", "reason"),
    [
        ([{"id": "a", "tag": "reserch"}], "tasks.a.tag", "did you mean 'research'"),
        ([{"id": "a", "worker_type": "maths"}], "tasks.a.tag", "known: analysis, analyst, fast"),
        ([{"id": "a"}], "tasks.a", "names no tag"),
        ([{"id": "a", "worker": "alcie"}], "tasks.a.worker", "did you mean 'alice'? known: alice, bob"),
        ([{"id": "a", "worker": "bob", "broadcast": True}], "tasks.a.worker", "leave the worker out"),
        ([{"id": "a", "match_all": ["fast", "writing"]}], "tasks.a", "no role has all of"),
        ([{"id": "a", "tag": "fast", "match_all": ["fast"]}], "tasks.a", "one or the other"),
        ([{"id": "a", "tag": "fast"}, {"id": "a", "tag": "fast"}], "tasks.a", "2 tasks have this id"),
        ([{"id": "a", "tag": "fast", "dependencies": ["b"]}], "tasks.a.dependencies", "no task has the id 'b'"),
        ([{"id": "a", "tag": "fast", "dependencies": ["a"]}], "tasks.a.dependencies", "a → a"),
        (
            [{"id": "a", "broadcast": True}, {"id": "a-writer", "tag": "fast"}],
            "tasks.a-writer",
            "a copy of a broadcast gets this id",
        ),
        ([{"id": "a", "tag": "fast", "inputs": {"x": "y" * 300_000}}], "tasks.a.inputs", "300,009 characters of JSON"),
        ([{"id": "a", "tag": "fast", "inputs": {"x": math.nan}}], "tasks.a.inputs", "cannot be sent as JSON"),
        ([{"id": "a", "tag": "fast", "inputs": {"x": DEEP}}], "tasks.a.inputs", "cannot be sent as JSON"),
        ([{"id": "a", "tag": "fast", "gather": "done"}], "tasks.a.gather", "nothing that could be gathered"),
        (
            [{"id": "a", "broadcast": True}, {"id": "b", "tag": "fast", "dependencies": ["a"], "gather": FIVE}],
            "tasks.b.gather",
            "at least 5 are to be done, but it depends on 3",
        ),
        ([{"id": "a", "tag": "fast", "item_of": "a"}], "tasks.a.item_of", "give the map another name"),
    ],
)
def test_a_plan_that_cannot_work_is_an_error(tasks: list[dict[str, Any]], where: str, reason: str):
    found = errors(lint(plan(*tasks), TEAM))

    assert [finding.where for finding in found] == [where]
    assert reason in found[0].text


def test_a_schema_that_is_none_is_an_error_for_every_task_that_has_it():
    schema = {"type": "objekt"}
    tasks = [{"id": name, "tag": "fast", "expected_output": schema} for name in "ab"]

    found = errors(lint(plan(*tasks, {"id": "c", "tag": "fast", "expected_output": {"type": "object"}}), TEAM))

    assert [finding.where for finding in found] == ["tasks.a.expected_output", "tasks.b.expected_output"]
    assert "'objekt'" in found[0].text


def test_mistakes_of_every_kind_are_said_at_once_however_many_there_are_of_one():
    tasks = [{"id": f"t{n}", "tag": "fast", "dependencies": ["nobody"]} for n in range(30)]
    tasks += [{"id": i, "tag": "fast", "dependencies": [need, "nobody"]} for i, need in (("a", "b"), ("b", "a"))]
    tasks += [{"id": "c", "tag": "reserch"}]

    said = " ".join(map(str, errors(lint(plan(*tasks), TEAM))))

    assert all(words in said for words in ("no task has the id 'nobody'", "a → b → a", "did you mean 'research'"))


def test_a_function_is_not_to_be_described_anew():
    both = team({"name": "thinker"}, {"name": "counter", "run": "roles:count"})
    wanted = [{"id": name, "tag": name, "retry": {"refine": True}} for name in ("thinker", "counter")]

    (found,) = errors(lint(plan(*wanted), both))

    assert (found.where, found.text[:22]) == ("tasks.counter.retry.refine", "its role is a function")


def test_a_cycle_is_named_along_its_tasks():
    tasks = [{"id": i, "tag": "fast", "dependencies": [need]} for i, need in (("a", "b"), ("b", "c"), ("c", "a"))]

    assert "a → b → c → a" in errors(lint(plan(*tasks, {"id": "d", "tag": "fast"}), TEAM))[0].text


def test_more_tasks_than_the_budget_are_an_error_also_when_a_broadcast_makes_them():
    broadcast = plan({"id": "a", "broadcast": True})

    assert errors(lint(broadcast, TEAM, Budget(tasks=3))) == []
    assert "3 tasks; the request may have 2" in errors(lint(broadcast, TEAM, Budget(tasks=2)))[0].text


def test_tasks_with_the_same_tags_dependencies_and_words_are_the_same_work():
    same = plan(
        {"id": "a", "tag": "fast", "description": "Find the prices, in EUR!"},
        {"id": "b", "tag": "fast", "description": "find  the prices in eur"},
        {"id": "c", "tag": "fast", "description": "Find the prices in USD"},
        {"id": "d", "tag": "fast", "description": "Find the prices in EUR", "dependencies": ["a"]},
        {"id": "e", "tag": "slow", "description": "Find the prices in EUR"},
        {"id": "i", "tag": "fast", "description": "Find the prices in EUR", "inputs": {"of": "apples"}},
        {"id": "f", "tag": "fast", "description": "add -5 %"},
        {"id": "g", "tag": "fast", "description": "add 5 %"},
    )

    assert same_work(same) == [("a", "b")]


def test_copies_of_a_broadcast_and_inputs_of_a_select_may_be_the_same():
    twins = [{"id": name, "tag": "fast", "description": "write a title"} for name in ("a", "b")]
    last = {"id": "c", "tag": "fast", "description": "pick", "dependencies": ["a", "b"]}

    assert same_work(plan(*twins)) == [("a", "b")]
    assert same_work(plan(*twins).model_copy(update={"aggregation": "select"})) == []
    assert same_work(plan(*twins, last).model_copy(update={"aggregation": "select"})) == [("a", "b")]
    assert same_work(plan(*({**twin, "tag": None, "broadcast": True} for twin in twins))) == []


def test_vague_repeated_and_miscounted_tasks_are_warnings():
    vague = Plan.model_validate({"tasks": [{"id": i, "description": "Analyze the data", "tag": "fast"} for i in "ab"]})

    found = lint(vague, TEAM, num_tasks=3)

    assert [finding.level for finding in found] == ["warning"] * 3
    assert [finding.text.partition(":")[0] for finding in found] == [
        "3 tasks were asked for, the plan has 2",
        "vague descriptions, say what exactly",
        "the same work as an earlier task",
    ]


def test_a_route_ends_at_one_role_and_a_broadcast_at_all_that_match():
    routed = route(
        plan(
            {"id": "a", "match_all": ["fast"], "match_some": ["analysis", "writing"]},
            {"id": "b", "match_some": ["fast"], "broadcast": True, "dependencies": ["a"]},
            {"id": "c", "tag": "writing", "dependencies": ["b", "a"]},
        ),
        TEAM,
    )

    assert [(task.id, task.tag, task.dependencies) for task in routed.tasks] == [
        ("a", "analyst", ()),
        ("b-researcher", "researcher", ("a",)),
        ("b-analyst", "analyst", ("a",)),
        ("c", "writing", ("b-researcher", "b-analyst", "a")),
    ]
    assert [task.timeout_seconds for task in routed.tasks] == [60, None, 60, None]


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("Find the current prices of apples in EUR", "Please look up prices of apples, in EUR", True),
        ("Compare Azure with Google Cloud", "Compare Google Cloud with Azure", True),
        ("Summarise the role of insulin in adults", "Summarise the role of insulin in children", False),
        ("List the sales of 2023", "List the sales of 2024", False),
        ("Convert 5 USD to EUR", "Convert 5 EUR to USD", False),
        ("List cities with more people than Oslo", "List cities with less people than Oslo", False),
        ("add -5 %", "add 5 %", False),
        ("the", "it", False),
    ],
)
def test_tasks_that_differ_only_in_how_it_is_said_are_nearly_the_same_work(one: str, other: str, are_same: bool):
    both = plan({"id": "a", "tag": "fast", "description": one}, {"id": "b", "tag": "fast", "description": other})

    assert nearly_same_work(both, both.tasks) == ([("a", "b")] if are_same else [])


def test_nearly_the_same_work_is_a_warning_unless_inputs_or_a_function_say_what_differs():
    team_of_both = team({"name": "thinker"}, {"name": "counter", "run": "roles:count"})
    texts = ("Find all prices of apples", "look up the prices of apples")

    def warned(**fields: Any) -> list[str]:
        tasks = [{"id": f"t{n}", "description": text, **fields} for n, text in enumerate(texts)]
        return [finding.text for finding in lint(plan(*tasks), team_of_both)]

    assert warned(tag="thinker") == ["nearly the same work, say what differs: t0 = t1"]
    assert warned(tag="thinker", inputs={"page": 3}) == []
    assert warned(tag="counter") == []


def test_a_vague_description_is_no_warning_where_inputs_or_a_function_say_the_rest():
    team_of_both = team({"name": "thinker"}, {"name": "counter", "run": "roles:count"})
    task = {"id": "a", "description": "process the data"}

    assert [str(found) for found in lint(plan({**task, "tag": "thinker"}), team_of_both)] == [
        "tasks: vague descriptions, say what exactly: a"
    ]
    assert lint(plan({**task, "tag": "thinker", "inputs": {"data": [1, 2]}}), team_of_both) == []
    assert lint(plan({**task, "tag": "counter"}), team_of_both) == []


GRAPHS = st.dictionaries(st.integers(0, 9).map(str), st.sets(st.integers(0, 9).map(str)), min_size=1)


@given(GRAPHS)
def test_a_cycle_is_found_exactly_when_there_is_no_order(graph: dict[str, set[str]]):
    needs = {node: tuple(sorted(others & graph.keys())) for node, others in graph.items()}

    cycle = cycle_in(needs)

    placed: set[str] = set()
    while ready := [node for node in needs if node not in placed and placed.issuperset(needs[node])]:
        placed.update(ready)
    assert bool(cycle) == (len(placed) < len(needs))
    assert all(after in needs[before] for before, after in pairwise(cycle))
    assert not cycle or cycle[0] == cycle[-1]


TASKS = st.fixed_dictionaries(
    {"broadcast": st.booleans(), "match_some": st.lists(st.sampled_from(["fast", "writing", "research"]), max_size=2)}
)


@given(st.lists(TASKS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_what_lints_clean_routes_to_a_plan_that_lints_clean(tasks: list[dict[str, Any]], chance: random.Random):
    numbered = [
        {**each, "id": f"t{number}", "dependencies": [f"t{n}" for n in range(number) if chance.random() < 0.3]}
        for number, each in enumerate(tasks)
    ]
    given_plan = plan(*numbered)
    if errors(lint(given_plan, TEAM)):
        return

    routed = route(given_plan, TEAM)

    assert errors(lint(routed, TEAM)) == []
    assert all(task.tag and not task.broadcast and not task.match_some for task in routed.tasks)


def test_ten_thousand_tasks_are_linted_and_routed_in_well_under_a_second():
    tasks: list[dict[str, Any]] = [{"id": "t0", "tag": "fast"}]
    tasks += [{"id": f"t{n}", "tag": "fast", "dependencies": [f"t{n - 1}", "t0"]} for n in range(1, 10_000)]
    large = plan(*tasks)

    started = time.process_time()
    assert lint(large, TEAM) == []
    route(large, TEAM)

    assert time.process_time() - started < 1.0
