"""`muster status` over a long queue, with nobody there to take anything from it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster_client.queue import resolve_id
from muster_protocol.errors import Invalid
from tests.flow.command_line import Here
from tests.harness import Muster

Status = Callable[..., Awaitable[dict[str, Any]]]

PAGE = 1000  # what the broker gives at once


@pytest.fixture
def status(muster: Muster, tmp_path: Path) -> Status:
    """What `muster status --json` says here."""
    folder = tmp_path / "here"
    folder.mkdir()
    here = Here(folder, MUSTER_NATS_URL=muster.broker.url)

    async def document(*words: str) -> dict[str, Any]:
        return await asyncio.to_thread(here.document, "status", *words)

    return document


async def test_the_newest_requests_are_shown_and_all_are_counted(muster: Muster, status: Status) -> None:
    for number in range(PAGE + 2):
        await muster.publish("requests.default", json.dumps({"text": "hello", "id": f"r{number}"}).encode(), None)

    printed = await status()

    assert printed["open"] == PAGE + 2
    assert [request["request_id"] for request in printed["requests"]][:2] == [f"r{PAGE + 1}", f"r{PAGE}"]
    assert (await status(f"r{PAGE + 1}"))["cause"] == "queued: no supervisor has taken it"


async def test_a_large_request_is_shown_under_its_own_id(muster: Muster, status: Status) -> None:
    await muster.client.submit("hello " * 100_000, id="large")

    (shown,) = (await status())["requests"]

    assert (shown["request_id"], shown["text"]) == ("large", "a large request")
    assert (await status("large"))["request_id"] == "large"


async def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(muster: Muster) -> None:
    for request_id in ("abc-1", "abc-2", "b-3"):
        await muster.publish("requests.default", json.dumps({"text": "hello", "id": request_id}).encode(), None)

    assert await resolve_id(muster.bus, "b") == "b-3"
    assert await resolve_id(muster.bus, "abc-1") == "abc-1"
    with pytest.raises(Invalid, match="2 requests begin with 'abc': abc-1, abc-2; write more of it"):
        await resolve_id(muster.bus, "abc")
    with pytest.raises(Invalid, match="no request 'c' is known here"):
        await resolve_id(muster.bus, "c")
    assert await resolve_id(muster.bus, "c", is_old=True) == "c"
    await muster.start("supervisor", "s1")
    await muster.client.cancel("b-3")
    await muster.client.answer("b-3", timeout=30)
    assert await resolve_id(muster.bus, "b") == "b-3"  # it has left the queue, its log is there


async def test_without_a_coordinator_the_list_says_why_it_is_short(status: Status) -> None:
    assert "only a coordinator knows them" in (await status())["ended_missing"]
