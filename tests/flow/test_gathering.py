"""Maps over any JSON, broadcasts, and tasks that gather what came of them, also when something failed."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio

from muster_protocol.messages import AnswerStatus
from tests.flow.command_line import Here
from tests.guards import guards
from tests.harness import Muster, running

ROLES = """\
  - {name: distance, run: "gathered:distance"}
  - {name: total, run: "gathered:total"}
"""
GATHERED = """\
async def distance(task, ctx):
    if task.inputs["item"]["km"] < 0:
        raise ValueError("no way goes there")
    return task.inputs["item"]["km"] * task.inputs["times"]


async def total(task, ctx):
    return {name: parts for name, parts in ctx.outputs.items()}
"""
WAYS: list[dict[str, Any]] = [{"name": "Rome", "km": 20}, {"name": "Thule", "km": -1}, {"name": "Oslo", "km": 10}]
MAP: dict[str, Any] = {
    "template": {
        "description": "How far is {item.name}?",
        "tag": "distance",
        "inputs": {"times": 2},
        "max_attempts": 1,
    },
    "items": WAYS,
    "reduce": {"description": "Add them up", "tag": "total"},
}


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "gathered.py").write_text(GATHERED)
    async with running(tmp_path, roles=ROLES) as muster:
        await muster.start("supervisor", "s1")
        await muster.start("worker", "w1")
        yield muster


def part(place: int, output: int | None) -> dict[str, Any]:
    return {"item": WAYS[place], "status": "failed" if output is None else "done", "output": output}


@guards(
    "services/supervisor/muster_supervisor/steps/dispatch.py",
    "context=context_of(owner.state, task),",
    rule="I4",
    replace="context={},",
    seconds=20,
)
async def test_a_map_over_objects_is_gathered_in_order_with_the_item_that_failed_as_a_gap(muster: Muster) -> None:
    answer = await muster.ask(map=MAP)

    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"items": [part(0, 40), part(1, None), part(2, 20)]}
    assert [(row.id, row.label, row.status.value) for row in answer.tasks] == [
        ("item-1", "Rome", "done"),
        ("item-2", "Thule", "failed"),
        ("item-3", "Oslo", "done"),
        ("reduce", "", "done"),
    ]
    assert answer.gaps == ("Thule failed: ValueError: no way goes there",)


async def test_a_map_without_reduce_names_its_items_by_what_they_are_in_the_answer_and_on_the_command_line(
    muster: Muster, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    given = json.dumps({name: MAP[name] for name in ("template", "items")})

    ran = await asyncio.to_thread(here.run, "submit", "--map", "-", "--team", "default", text=given)

    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == "## Rome\n\n40\n\n## Oslo\n\n20\n"
    assert "Thule" in ran.stderr


async def test_what_gathers_is_skipped_when_fewer_are_done_than_it_asks_for(muster: Muster) -> None:
    answer = await muster.ask(map={**MAP, "reduce": {**MAP["reduce"], "gather": {"at_least": 3}}})

    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"item-1": 40, "item-3": 20}
    assert answer.gaps[-1] == "reduce was skipped: Thule failed: ValueError: no way goes there"


async def test_a_broadcast_is_gathered_by_role(muster: Muster) -> None:
    news = {"id": "news", "description": '{"output": "heard"}', "match_some": ["scripted", "second"], "broadcast": True}
    total = {"id": "sum", "description": "who heard?", "tag": "total", "dependencies": ["news"]}

    answer = await muster.ask(plan={"tasks": [news, total]})

    heard = {"status": "done", "output": "heard"}
    assert answer.output == {"news": {"scripted": heard, "second": heard}}


async def test_a_template_with_an_unknown_name_and_a_field_that_no_item_has_are_named(muster: Muster) -> None:
    template: dict[str, Any] = MAP["template"]
    body = json.dumps({"map": {**MAP, "template": {**template, "description": "How far is {itm}?"}}}).encode()
    raw = await muster.answer(muster.id_of(await muster.publish("requests.default", body, None), body))
    missing = await muster.ask(map={**MAP, "template": {**template, "description": "How far is {item.nmae}?"}})

    assert "map: template: nothing has the name {itm}" in raw.text
    assert "map.items.0: the template asks for {item.nmae}, but there is only km, name" in missing.text
    assert (raw.status, missing.status) == (AnswerStatus.FAILED, AnswerStatus.FAILED)
