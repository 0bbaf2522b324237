"""`muster status` over a long queue, with nobody there to take anything from it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

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
