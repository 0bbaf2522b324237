"""pytest fixtures: put `pytest_plugins = ["muster_testing.fixtures"]` into the top conftest.py."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import mkdtemp

import pytest
import pytest_asyncio

from muster_bus.broker.embedded import Server
from muster_testing.broker import running_broker
from muster_testing.cluster import Cluster, running_cluster
from muster_testing.otlp import Collector
from muster_testing.proxy import Proxy, running_proxy
from muster_testing.team import RunningTeam, running_team

StartTeam = Callable[[Path], Awaitable[RunningTeam]]


@pytest_asyncio.fixture
async def broker(tmp_path: Path) -> AsyncGenerator[Server]:
    """A broker without streams."""
    async with running_broker(tmp_path / "broker") as started:
        yield started


@pytest_asyncio.fixture
async def proxy(broker: Server) -> AsyncGenerator[Proxy]:
    """A proxy in front of the broker, for connections that a test wants to cut."""
    async with running_proxy(broker.port) as started:
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    """Three brokers for all tests that need them: electing their first leader takes seconds."""
    async with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest_asyncio.fixture
async def collector() -> AsyncGenerator[Collector]:
    """An OTLP endpoint; give its `environment` to the services whose spans you want to see."""
    async with Collector() as started:
        yield started


@pytest_asyncio.fixture
async def start_team(tmp_path: Path) -> AsyncGenerator[StartTeam]:
    """Starts the team of a team file: `team = await start_team(Path("team.yaml"))`."""
    async with AsyncExitStack() as started:

        async def start(team_file: Path) -> RunningTeam:
            folder = Path(mkdtemp(dir=tmp_path))  # two teams of one test must not share their files
            return await started.enter_async_context(running_team(team_file, folder))

        yield start
