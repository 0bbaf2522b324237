"""Services of tests are processes of their own, though they are forked from one that has their imports."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.guards import guards
from tests.harness import Muster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each is started as a shell starts it")
STARTER = "libs/testing/muster_testing/starter.py"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def opened_by(pid: int) -> list[str]:
    return [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_all_have_one_parent_and_each_ends_by_itself_with_its_code(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    assert parent_of(muster.pid("s1")) == parent_of(muster.pid("w1")) != os.getpid()

    muster.kill("s1")

    assert (await muster.ended("s1"), muster.is_running("w1")) == (-signal.SIGKILL, True)
    assert await muster.stop("w1") == 0


@guards(STARTER, "            set_parent_death_signal()\n", rule="I12", replace="            pass\n", seconds=40)
async def test_no_service_outlives_its_starter_and_the_next_has_another(muster: Muster) -> None:
    await muster.start("worker", "w1")
    worker = muster.pid("w1")
    os.kill(parent_of(worker), signal.SIGKILL)

    await muster.until(lambda: not is_alive(worker), "the worker ends too", within=15)
    assert await muster.ended("w1") == -signal.SIGKILL
    await muster.start("worker", "w2")


async def test_what_a_test_gives_is_read_anew(muster: Muster) -> None:
    await muster.start("worker", "w1", env={"MUSTER_LOG": "json"})
    await muster.start("worker", "w2")

    assert '{"ready": "worker/w1"}' in muster.service_log("w1")
    assert "worker/w2 is ready" in muster.service_log("w2")


async def test_a_variable_of_the_interpreter_takes_an_interpreter_of_its_own(muster: Muster) -> None:
    await muster.start("worker", "w1", env={"PYTHONHASHSEED": "1"})

    assert "muster_cli" in words_of(muster.pid("w1"))
    assert parent_of(muster.pid("w1")) == os.getpid()


async def test_a_service_has_nothing_open_that_is_its_starters(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    assert [name for name in opened_by(muster.pid("w1")) if name.startswith("pipe:")] == []
