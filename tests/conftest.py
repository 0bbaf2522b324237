"""What every test may use: the fixtures of muster_testing, and a running Muster of its own."""

import logging
import signal
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.harness import Muster, running
from tests.small_disk import mounted_disk

pytest_plugins = ["muster_testing.fixtures"]

# A busy machine is no failure, and what `make test` says of a commit it says every time. To look for new examples:
# make test ARGS="--hypothesis-profile=search tests/unit"
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile("steady")

# Started in the background of a shell, the tests and all that they start ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)


class NotRun:
    """Fails a run in several processes that left out a test: xdist's work stealing once left out six, silently."""

    def __init__(self) -> None:
        self.expected: set[str] = set()
        self.seen: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.expected.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seen.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        # Not TESTS_FAILED: that is the one code after which scripts/rerun.py gives a second try.
        if exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED} and self.expected - self.seen:
            session.exitstatus = pytest.ExitCode.INTERRUPTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for missing in sorted(self.expected - self.seen):
            terminalreporter.write_line(f"NOT RUN {missing}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(NotRun())


@pytest.fixture(autouse=True)
def restore_logging() -> Generator[None]:
    """A test that sets logging up must not keep the next one from reading log lines."""
    root = logging.getLogger("muster")
    before = root.propagate, root.handlers[:], root.level
    yield
    root.propagate, root.handlers[:], root.level = before


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    with mounted_disk(tmp_path / "disk") as disk:
        yield disk


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path) as started:
        yield started


@pytest_asyncio.fixture
async def patient_muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    """With leases so long that whoever waits for one to run out fails the test."""
    async with running(tmp_path, lease_seconds=60.0) as started:
        yield started
