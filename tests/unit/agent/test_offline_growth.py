"""What the offline model says of a plan that may grow: open questions are asked once, a failed task goes elsewhere."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.models.offline.model import Offline
from muster_agent.models.port import Ask
from muster_agent.models.standing import ReplaceBrief, ReviewBrief, Room, Standing, TaskShown
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.role_card import RoleCard

ROLES = (
    RoleCard(name="scout", description="Finds prices of ferries", tools=("search_corpus",)),
    RoleCard(name="finder", description="Finds prices in old lists", tools=("search_corpus", "calculate")),
    RoleCard(name="lawyer", description="Knows the law of the sea"),
    RoleCard(name="poet", description="Sings"),
)
NEEDS = st.lists(st.integers(0, 7), max_size=3)


def task(task_id: str, *needs: str, tag: str = "scout", said: str = "find the prices of ferries") -> TaskSpec:
    return TaskSpec(id=task_id, description=said, tag=tag, dependencies=needs)


def shown(spec: TaskSpec, status: str = "done", output: Any = "found") -> TaskShown:
    return TaskShown(spec, status=status, role=spec.tag or "", output=output if status == "done" else None, attempts=1)


def standing(*tasks: TaskShown, room: int = 5) -> Standing:
    return Standing("What does it cost?", tasks, ROLES, Room(room))


def said(brief: ReviewBrief | ReplaceBrief) -> dict[str, Any]:
    return json.loads(asyncio.run(Offline().ask(Ask(brief))).text)


@pytest.mark.parametrize(
    "output",
    [
        "About 40 euros.\nOpen question: Is a dog allowed by law?\n",
        "- **OPEN QUESTION:** Is a dog allowed by law?",
        {"price": 40, "notes": [{"text": "open question: Is a dog allowed by law?"}]},
    ],
)
def test_a_question_that_a_result_leaves_open_is_asked_of_whom_it_fits(output: object):
    found = said(ReviewBrief(standing(shown(task("prices"), output=output))))

    (asked,) = found["tasks"]
    assert (found["verdict"], asked["tag"], asked["dependencies"]) == ("more", "lawyer", ["prices"])
    assert asked["description"] == "Is a dog allowed by law?"
    assert asked["description"] in found["reason"]


def test_a_question_is_asked_once_and_no_more_than_there_is_room():
    twice = shown(task("a"), output="Open question: Why?\nOpen question: why?\nOpen question: Since when?")
    before = shown(task("answer", said="Why?", tag="poet"), output="Open question: Why?")

    assert [each["description"] for each in said(ReviewBrief(standing(twice)))["tasks"]] == ["Why?", "Since when?"]
    assert [each["description"] for each in said(ReviewBrief(standing(twice, room=1)))["tasks"]] == ["Why?"]
    assert said(ReviewBrief(standing(before)))["verdict"] == "finish"
    assert said(ReviewBrief(standing(shown(task("a"), "failed"))))["verdict"] == "finish"


def test_a_failed_task_goes_to_the_role_that_fits_with_what_was_skipped_for_it():
    tasks = (
        shown(task("prices"), "failed"),
        shown(task("law", tag="lawyer")),
        shown(task("sum", "prices", "law", tag="poet", said="sum it up"), "skipped"),
        shown(task("song", "sum", tag="poet", said="sing it"), "skipped"),
    )
    found = said(ReplaceBrief(standing(*tasks), "prices", tried=("scout",), skipped=("sum", "song")))

    assert found["verdict"] == "replace"
    assert [(each["id"], each["tag"], each.get("dependencies", [])) for each in found["tasks"]] == [
        ("prices-2", "finder", []),
        ("sum-2", "poet", ["prices-2", "law"]),
        ("song-2", "poet", ["sum-2"]),
    ]
    assert found["drop"] == ["sum", "song"]


@pytest.mark.parametrize(
    ("tried", "status", "room", "reason"),
    [
        (("scout", "finder"), "done", 5, "no other role fits"),
        (("finder",), "done", 5, "no other role fits"),  # nobody else can compute
        (("scout",), "failed", 5, "needs more than this task"),
        (("scout",), "done", 1, "more than the plan may grow by"),
    ],
)
def test_the_gap_stays_where_nobody_fits_or_it_would_not_help(
    tried: tuple[str, ...], status: str, room: int, reason: str
):
    tasks = shown(task("prices"), "failed"), shown(task("law"), status), shown(task("sum", "prices", "law"), "skipped")
    found = said(ReplaceBrief(standing(*tasks, room=room), "prices", tried=tried, skipped=("sum",)))

    assert (found["verdict"], found["tasks"], found["drop"]) == ("keep", [], [])
    assert reason in found["reason"]


@given(st.lists(st.tuples(NEEDS, st.sampled_from(["done", "failed", "skipped", "not done yet"])), max_size=8))
def test_what_is_built_anew_waits_for_nothing_that_is_lost(drawn: list[tuple[list[int], str]]):
    tasks = [shown(task("t"), "failed")]
    for number, (needs, status) in enumerate(drawn):
        names = sorted({f"t{need}" if 0 <= need < number else "t" for need in needs})
        spec = task(f"t{number}", *names, said=f"do {number}")
        tasks.append(shown(spec, status))
    skipped = tuple(each.spec.id for each in tasks if each.status == "skipped")
    found = said(ReplaceBrief(standing(*tasks, room=20), "t", tried=("scout",), skipped=skipped))

    new = {each["id"]: each.get("dependencies", []) for each in found["tasks"]}
    lost = {each.spec.id for each in tasks if each.status in ("failed", "skipped")}
    stays = [each.spec for each in tasks if each.spec.id not in found["drop"]]
    assert not lost.intersection(need for needs in new.values() for need in needs)
    assert set(found["drop"]) <= set(skipped)
    assert not set(found["drop"]).intersection(need for spec in stays for need in spec.dependencies)
    assert not new.keys() & {each.spec.id for each in tasks}
