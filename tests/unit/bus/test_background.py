"""What goes on beside its owner does not end unseen."""

import asyncio

import pytest

from muster_bus.background import supervised


async def test_an_error_that_ends_it_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture):
    async def stumble() -> None:
        raise ValueError("over a stone")

    task = supervised(stumble(), "the walk")
    await asyncio.wait([task])

    assert "the walk: a background task failed" in caplog.text
    assert "ValueError: over a stone" in caplog.text


async def test_neither_its_end_nor_a_cancel_is_news(caplog: pytest.LogCaptureFixture):
    async def walk(seconds: float) -> None:
        await asyncio.sleep(seconds)

    arrived, stopped = supervised(walk(0), "one"), supervised(walk(60), "other")
    stopped.cancel()
    await asyncio.wait([arrived, stopped])

    assert caplog.text == ""
