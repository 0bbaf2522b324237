"""A plan that is shown: every task once, below what it waits for, and a document from which the same plan is read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.models.port import NOTHING
from muster_cli.json_file import read_plan
from muster_cli.plan.view import PlanView, in_words, plan_document, tree
from muster_protocol.errors import Invalid
from muster_protocol.plan import AtLeast, Plan, Retry, TaskSpec
from muster_supervisor.planning.estimate import Estimate


def task(name: str, *needs: str, **fields: object) -> TaskSpec:
    return TaskSpec.model_validate(
        {"id": name, "description": f"do {name}", "tag": "any", "dependencies": needs, **fields}
    )


def test_each_task_stands_below_the_last_of_those_that_it_waits_for():
    book = Plan(tasks=(task("t1"), task("t2"), task("t3", "t1"), task("t4", "t2"), task("t5", "t3", "t4")))

    assert list(tree(book)) == [
        "├ t1  [any]  do t1",
        "│ └ t3  [any]  do t3",
        "└ t2  [any]  do t2",
        "  └ t4  [any]  do t4",
        "    └ t5  [any]  (also after t3)  do t5",
    ]


def test_a_route_is_shown_as_it_was_asked_for():
    routes = Plan(
        tasks=(
            task("a", tag=None, match_all=["x", "y"], match_some=["z", "w"]),
            task("b", tag=None, match_some=["z"], broadcast=True),
            task("c", tag=None, broadcast=True, label="See all"),
        )
    )

    assert [text.partition("]")[0] for text in tree(routes)] == [
        "├ a  [x + y, z | w",
        "├ b  [everybody with z",
        "└ See all  [everybody",
    ]


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=10))
def test_every_task_is_shown_once_also_those_that_wait_for_each_other_or_for_nobody(needs: list[set[int]]):
    drawn = Plan(tasks=tuple(task(f"t{n}", *(f"t{m}" for m in wanted)) for n, wanted in enumerate(needs)))

    shown = [text.lstrip("│├└ ").partition(" ")[0] for text in tree(drawn)]

    assert sorted(shown) == sorted(each.id for each in drawn.tasks)


def test_a_long_chain_stays_within_the_line():
    chain = Plan(tasks=(task("t0"), *(task(f"t{n}", f"t{n - 1}") for n in range(1, 3000))))

    lines = list(tree(chain))

    assert len(lines) == 3000
    assert max(map(len, lines)) < 60


def test_the_document_is_read_as_the_same_plan_and_a_bare_plan_is_too(tmp_path: Path):
    given_plan = Plan(
        goal="g",
        tasks=(
            task("a", inputs={"x": [1, {"y": None}]}, expected_output={"type": "object"}, retry=Retry(max_attempts=2)),
            task("b", "a", gather=AtLeast(at_least=1), tag=None, match_some=["any"], timeout_seconds=3.5),
        ),
        aggregation="reduce",
        final_instruction="one page",
    )
    document = plan_document(PlanView(given_plan, [], None, NOTHING))
    file = tmp_path / "plan.json"

    for written in (document, document["plan"]):
        file.write_text(json.dumps(written))
        assert Plan.model_validate(read_plan(str(file))) == given_plan


def test_a_document_without_a_plan_says_that_none_could_be_made(tmp_path: Path):
    (tmp_path / "none.json").write_text(json.dumps(plan_document(PlanView(None, [], None, NOTHING))))

    with pytest.raises(Invalid, match=r"none\.json has no plan: none could be made"):
        read_plan(str(tmp_path / "none.json"))


def test_an_estimate_says_what_is_not_known():
    known = Estimate(3, 1, 1200.4, 0.05, 12.0, 30.0, ("a", "b"))

    assert in_words(known) == (
        "about 12.00 s (30.00 s one after the other), 1,200 tokens, $0.0500; of 1 task nothing is known; "
        "longest chain a → b (2 of 3 tasks)"
    )
    assert in_words(Estimate(1, 1, 0, 0, 0, 0, ("a",))) == (
        "longest chain a (1 of 1 task); nothing was measured of its roles yet, so nobody knows what it will take"
    )
