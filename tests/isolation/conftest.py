"""A pool of a worker with two slots; and nothing that a function started outlives its test."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.isolation.calls import Calls, end_all


@pytest.fixture
async def calls() -> AsyncGenerator[Calls]:
    calls = Calls()
    yield calls
    await calls.pool.close()


@pytest.fixture(autouse=True)
def _end_what_is_left(tmp_path: Path) -> Generator[None]:
    yield
    end_all(tmp_path)
