"""The demo, as `make demo` runs it: short, true, and gone without a trace."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.flow.command_line import Here, is_alive, read_until


@pytest.mark.sweep
def test_the_demo_shows_a_plan_an_answer_and_the_time_it_saves(tmp_path: Path):
    here = Here(tmp_path)
    before = set(os.listdir(tmp_path))

    ran = here.run("demo", MUSTER_TEAM_FILE="nonsense.yaml", ANTHROPIC_API_KEY="not to be spent")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(_found(r"plan +(\d+) tasks", ran.stdout)) >= 7
    for role in ("researcher", "analyst", "writer"):
        assert role in ran.stdout
    assert "Compare AWS, Azure and Google Cloud" in ran.stdout
    if not _is_faster(ran.stdout):  # a machine that stood still in the first half of it: not twice in a row
        ran = here.run("demo")
    assert _is_faster(ran.stdout)
    for honest in ("not an LLM", "invented samples", "stands in for the time that a model would take"):
        assert honest in " ".join(ran.stdout.split())
    _nothing_is_left(here, ran.stdout)
    assert set(os.listdir(tmp_path)) - before == {".muster"}


@pytest.mark.parametrize(
    "victim", ["supervisor", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("worker", "broker"))]
)
def test_a_request_is_answered_once_whichever_process_is_killed(tmp_path: Path, victim: str):
    here = Here(tmp_path)

    ran = here.run("demo", "--kill", victim)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "⚡ kill -9" in ran.stdout
    assert "✓ 1 answer in the log" in ran.stdout
    done, tasks = re.findall(r"✓ (\d+) of (\d+) tasks with exactly one counted result", ran.stdout)[0]
    assert done == tasks
    _nothing_is_left(here, ran.stdout)


def test_a_second_demo_is_refused_and_ctrl_c_stops_the_first(tmp_path: Path):
    here = Here(tmp_path)
    with here.start("demo") as demo:
        printed = read_until(demo, "The request")
        demo.send_signal(signal.SIGSTOP)  # however long the second takes, the first is not over
        second = here.run("demo")
        demo.send_signal(signal.SIGCONT)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 130

    assert second.returncode == 1
    assert "muster demo is already running" in second.stderr
    _nothing_is_left(here, printed)
    assert "Traceback" not in (tmp_path / "demo.txt").read_text()


def _nothing_is_left(here: Here, printed: str) -> None:
    processes = [int(pid) for pid in re.findall(r"process (\d+)", printed)]
    assert len(processes) >= 4
    broker = here.folder / ".muster" / "demo" / "nats" / "nats.pid"
    assert not broker.exists() or not is_alive(int(broker.read_text()))
    assert not any(is_alive(pid) for pid in processes)


def _is_faster(printed: str) -> bool:
    parallel = float(_found(r"([\d.]+) s with the team in parallel", printed))
    return float(_found(r"([\d.]+) s one task at a time", printed)) > parallel


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, f"no {pattern!r} in {text}"
    return match[1]
