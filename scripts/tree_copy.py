"""A copy of the tree in which tests run while one of its files is changed; the tree itself is never broken."""

import compileall
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from scripts.guarded_lines import ROOT

END_SECONDS = 10.0  # for a run that was interrupted to stop its brokers and services
# A changed file may import what is also a plugin of pytest: anyio is one.
ALREADY_IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
PASSED, FAILED, NOTHING_COLLECTED, NOT_IMPORTED = 0, 1, 5, 99
HUNG = "the run did not end within"

# Imports the changed file first: a test must not fail because that file cannot be loaded, or pass on another one.
RUNNER = f"""
import importlib, sys, traceback
try:
    for name, path in (pair.split("=") for pair in sys.argv[1].split(",")):
        found = importlib.import_module(name).__file__
        assert found == path, f"{{name}} is imported from {{found}}, not from {{path}}"
except BaseException:
    traceback.print_exc()
    sys.exit({NOT_IMPORTED})
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""


class Verdict(StrEnum):
    RED = "red"
    HANG = "hang"  # counts as red
    GREEN = "GREEN"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run of tests ended."""

    verdict: Verdict
    seconds: float
    output: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The seconds that one test and a whole run may take."""

    test: int
    whole: float


def module_of(file: str) -> str:
    """`libs/bus/muster_bus/log.py` is imported as `muster_bus.log`."""
    parts = Path(file).with_suffix("").parts
    parts = parts[next(n for n, part in enumerate(parts) if part.startswith("muster_")) :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def copy_tree(target: Path) -> None:
    """Everything that is or could be committed, as it is now, with byte code so that each run starts faster."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    compileall.compile_dir(target, quiet=1)


class TreeCopy:
    """A copy of the tree in which one change at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        self._tests = folder / "tests"
        copy_tree(self._tree)
        packages = [*self._tree.glob("libs/*"), *self._tree.glob("services/*"), self._tree / "cli"]
        # Found before the packages that are installed from the tree itself, also by each process that a test starts.
        path = os.pathsep.join(str(root) for root in (*packages, self._tree))
        self._env = {**os.environ, "PYTHONPATH": path}

    def run(self, tests: Iterable[str], files: Iterable[str], limits: Limits) -> Outcome:
        """Run the tests, after a check that these files are imported from this copy."""
        origins = ",".join(sorted({f"{module_of(file)}={self._tree / file}" for file in files}))
        options = ["-x", "-p", "no:cacheprovider", f"--timeout={limits.test}", f"--basetemp={self._tests}"]
        options += ["-W", ALREADY_IMPORTED]
        command = [sys.executable, "-c", RUNNER, origins, *options, *tests]
        began = time.monotonic()
        code, output = self._execute(command, limits.whole)
        return Outcome(_verdict(code, output), time.monotonic() - began, output)

    def run_with(self, file: str, changed: str, tests: Iterable[str], limits: Limits) -> Outcome:
        """Run the tests while a file has another content; the copy is restored afterwards."""
        path = self._tree / file
        with _written(path, changed, path.read_text(encoding="utf-8")):
            return self.run(tests, [file], limits)

    def _execute(self, command: list[str], seconds: float) -> tuple[int, str]:
        """The exit code and the output; a run that hangs is stopped and counts as failed."""
        process = subprocess.Popen(
            command,
            cwd=self._tree,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            return _communicated(process, seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _communicated(process, END_SECONDS)
            return FAILED, f"1 failed: {HUNG} {seconds:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _written(path: Path, changed: str, source: str) -> Generator[None]:
    try:
        _write(path, changed)
        yield
    finally:
        _write(path, source)


def _write(path: Path, text: str) -> None:
    """Write a source and remove its byte code, which Python trusts when size and second are the same."""
    path.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _communicated(process: "subprocess.Popen[str]", seconds: float) -> tuple[int, str]:
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def _verdict(code: int, output: str) -> Verdict:
    if code in (PASSED, NOTHING_COLLECTED):
        return Verdict.GREEN
    has_failed = re.search(r"^1 failed\b", output, re.MULTILINE)  # pytest's last line, or that of a hang
    if code != FAILED or not has_failed:
        return Verdict.ERROR
    return Verdict.HANG if "Failed: Timeout (>" in output or HUNG in output else Verdict.RED
