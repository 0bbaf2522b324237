"""A background task that fails is logged."""

import asyncio

import pytest

from muster_bus.background import supervised


async def test_an_error_that_ends_it_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture):
    async def fail() -> None:
        raise ValueError("broken")

    task = supervised(fail(), "the task")
    await asyncio.wait([task])

    assert "the task: a background task failed" in caplog.text
    assert "ValueError: broken" in caplog.text


async def test_neither_its_end_nor_a_cancel_is_logged(caplog: pytest.LogCaptureFixture):
    async def pause(seconds: float) -> None:
        await asyncio.sleep(seconds)

    ended, stopped = supervised(pause(0), "one"), supervised(pause(60), "other")
    stopped.cancel()
    await asyncio.wait([ended, stopped])

    assert caplog.text == ""
