"""An answer that a model composes through the strict Messages server: mended once, and held to what the results say."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus
from muster_testing.messages_server import message, running_messages_server, text
from tests.harness import LEASE_SECONDS, Muster

TEAM = """\
team: default
supervisor: {model: claude-sonnet-5-5}
roles:
  - {name: scripted, description: Does what its orders say, run: "muster_testing.roles:scripted"}
"""
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}


def saying(aggregation: str, **outputs: str) -> dict[str, Any]:
    tasks = [
        {"id": name, "description": json.dumps({"output": said}), "tag": "scripted"} for name, said in outputs.items()
    ]
    return {"tasks": tasks, "aggregation": aggregation}


@pytest.mark.sweep
async def test_a_judge_picks_and_an_answer_that_fits_no_schema_is_mended_once(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    replies = ('{"best": "b", "reason": "it names the price"}', '{"price": "10"}', '{"price": 10}', "It is 77 euros.")
    async with (
        running_messages_server(*(message(text(reply)) for reply in replies)) as server,
        Muster.provisioned(tmp_path / "team.yaml", tmp_path, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await asyncio.gather(muster.start("worker", "w1"), muster.start("supervisor", "s1", env=server.environment))
        judged = await muster.ask(plan=saying("select", a="cheap", b="10 euros"))
        mended = await muster.ask(plan=saying("merge", a="The price is 10 euros.", b="ok"), answer_schema=SCHEMA)
        invented = await muster.ask(plan=saying("merge", a="The price is 10 euros.", b="ok"))

    assert judged.selected is not None
    assert (judged.output, judged.selected.task_id) == ("10 euros", "b")
    assert judged.selected.reason == "claude-sonnet-5-5 judged: it names the price"
    assert (mended.status, mended.output, mended.unsupported) == (AnswerStatus.DONE, {"price": 10}, ())
    assert "price: '10' is not of type 'number'" in json.dumps(server.requests[2])
    assert (invented.unsupported, invented.confidence) == (("77 euros",), 0.0)
