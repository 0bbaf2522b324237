"""What attempts came to, as numbers at the coordinator: by role, status and class of error."""

import asyncio
import urllib.request
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from muster_testing import until_asked
from tests.harness import Muster, running


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path) as muster:
        yield muster


async def test_a_retried_failure_and_a_success_are_counted_with_the_class_of_the_error(muster: Muster) -> None:
    await muster.start("coordinator", "c1")
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    await muster.answer(await muster.submit([{"id": "a", "orders": {"fail": "not this time", "times": 1}}]))

    async def counted() -> bool:
        text = await asyncio.to_thread(_read, f"{muster.http_url('c1')}/metrics")
        return {
            'muster_results_total{role="scripted",status="failed",error_class="logic"} 1',
            'muster_results_total{role="scripted",status="done",error_class=""} 1',
            'muster_requests{status="done"} 1',
        } <= set(text.splitlines())

    await until_asked(counted, "both attempts and the request are counted")


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(reply.read(), "utf-8")
