"""`scripts/rerun.py` gives a failed test a second try, alone, and hides nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.rerun import has_second_try

ROOT = Path(__file__).parents[2]
START = """\
import os
from pathlib import Path

import pytest

def is_first_try(test):
    tried = Path(f"{test}.tried")
    if tried.exists():
        return False
    tried.touch()
    return True

def test_passes(): pass

"""
FAILS_FIRST = "def test_x(): assert not is_first_try('x')\n"
FAILS_IN_MANY_WAYS = """\
@pytest.mark.parametrize("name", ["odd name [ü]::1"])
def test_fails(name):
    assert not is_first_try("fails")

def test_crashes():
    if is_first_try("crashes"):
        os._exit(1)

def test_hangs():
    if is_first_try("hangs"):
        while True: pass

@pytest.fixture
def resource():
    yield
    assert not is_first_try("teardown")

def test_teardown(resource): pass
"""
LEAVES_A_TEST_OUT = """\
from tests.conftest import pytest_configure

def pytest_runtest_protocol(item):
    return item.name == "test_passes" or None
"""


def rerun(folder: Path, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a suite of one file through the script, without the plugin that takes half a second to load."""
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest"]
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(START + tests, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "rerun.py"), *pytest_command, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def verdicts(ran: "subprocess.CompletedProcess[str]") -> list[str]:
    return sorted(line for line in ran.stdout.splitlines() if line.startswith(("FLAKY ", "FAILED TWICE ")))


def tries(ran: "subprocess.CompletedProcess[str]") -> int:
    return ran.stdout.count("once more, alone: ")


def test_a_run_without_failures_is_green_at_once(tmp_path: Path):
    ran = rerun(tmp_path, "")

    assert (ran.returncode, tries(ran), verdicts(ran)) == (0, 0, [])


def test_tests_that_pass_the_second_time_are_named_and_the_run_is_green(tmp_path: Path):
    ran = rerun(tmp_path, FAILS_IN_MANY_WAYS, "-n", "2", "--timeout", "2")

    assert ran.returncode == 0, ran.stdout
    found = [line.removeprefix("FLAKY test_it.py::").partition("[")[0] for line in verdicts(ran)]
    assert found == ["test_crashes", "test_fails", "test_hangs", "test_teardown"]


@pytest.mark.sweep
def test_a_test_that_fails_again_makes_the_run_red(tmp_path: Path):
    ran = rerun(tmp_path, FAILS_FIRST + "def test_y(): assert False\n")

    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert verdicts(ran) == ["FAILED TWICE test_it.py::test_y", "FLAKY test_it.py::test_x"]


@pytest.mark.parametrize("processes", [pytest.param("0", marks=pytest.mark.sweep), "2"])
def test_a_file_that_cannot_be_collected_makes_the_run_red_at_once(tmp_path: Path, processes: str):
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")

    ran = rerun(tmp_path, FAILS_FIRST, "-n", processes)

    assert "ERROR test_broken.py" in ran.stdout
    assert (ran.returncode != 0, tries(ran)) == (True, 0)


def test_an_interrupted_run_is_red_at_once(tmp_path: Path):
    ran = rerun(tmp_path, FAILS_FIRST + "def test_y(): raise KeyboardInterrupt\n")

    assert (ran.returncode, tries(ran)) == (pytest.ExitCode.INTERRUPTED, 0)


@pytest.mark.sweep
def test_a_run_that_left_a_test_out_is_red_at_once(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(LEAVES_A_TEST_OUT)

    ran = rerun(tmp_path, FAILS_FIRST, "-n", "2")

    assert "NOT RUN test_it.py::test_passes" in ran.stdout
    assert (ran.returncode, tries(ran)) == (pytest.ExitCode.INTERRUPTED, 0)


def test_six_failures_make_the_run_red_at_once(tmp_path: Path):
    ran = rerun(tmp_path, "@pytest.mark.parametrize('n', range(6))\ndef test_x(n): assert False\n")

    assert (ran.returncode, tries(ran)) == (pytest.ExitCode.TESTS_FAILED, 0)


def test_five_failures_have_a_second_try():
    failed = [f"tests/test_it.py::test_{n}" for n in range(5)]

    assert has_second_try(pytest.ExitCode.TESTS_FAILED, failed)
