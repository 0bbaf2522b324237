"""A pool of a worker with two slots."""

from collections.abc import AsyncGenerator

import pytest

from tests.isolation.calls import Calls


@pytest.fixture
async def calls() -> AsyncGenerator[Calls]:
    calls = Calls()
    yield calls
    await calls.pool.close()
