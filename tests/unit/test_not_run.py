"""A run in which a collected test reports nothing is red, and names the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = "def test_a(): pass\n\ndef test_b(): pass\n"
PASSED_OVER = """\
from tests.conftest import pytest_configure

def pytest_runtest_protocol(item):
    return item.name == {name!r} or None
"""


@pytest.mark.parametrize(("passed_over", "code"), [("test_b", 2), pytest.param("nobody", 0, marks=pytest.mark.sweep)])
def test_a_collected_test_that_reports_nothing_interrupts_the_run(tmp_path: Path, passed_over: str, code: int):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_two.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(PASSED_OVER.format(name=passed_over))

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ("NOT RUN test_two.py::test_b" in ran.stdout) == bool(code)
