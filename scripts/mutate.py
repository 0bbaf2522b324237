"""Take each line that a test guards away in turn and expect that test to fail.

    python -m scripts.mutate [--only RULE] [--tests PREFIX] [--jobs N]

A test says beside itself which line it guards (`@guards`, see tests/guards.py). The lines are removed in a copy of the
tree, so the tree itself is never broken. A guard is red when its test fails without the line, and a hang counts as red.
A changed file that cannot be imported, or a test that does not exist, is an error of the guard.
"""

import argparse
import compileall
import contextlib
import importlib.util
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from scripts.guarded_lines import ROOT, Guard, mutated, read_guards

HANG_SECONDS = 90.0  # the limit of the whole run of one guard, for a test that its own limit does not end
SLOW_TEST_SECONDS = 60  # the limit of a test while nothing is changed
WHOLE_SECONDS = 600.0  # the limit of all tests together while nothing is changed
END_SECONDS = 10.0  # for a run that was interrupted to stop its brokers and services
PASSED, FAILED, NOT_IMPORTED = 0, 1, 99
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
    """A copy of the tree in which one guard at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        self._tests = folder / "tests"
        copy_tree(self._tree)
        packages = [*self._tree.glob("libs/*"), *self._tree.glob("services/*"), self._tree / "cli"]
        # Found before the packages that are installed from the tree itself, also by each process that a test starts.
        path = os.pathsep.join(str(root) for root in (*packages, self._tree))
        self._env = {**os.environ, "PYTHONPATH": path}

    def run(self, tests: Iterable[str], guards: Iterable[Guard], test_seconds: int, seconds: float) -> Outcome:
        """Run the tests, after a check that the guarded modules are imported from this copy."""
        origins = ",".join(sorted({f"{guard.module}={self._tree / guard.file}" for guard in guards}))
        options = ["-x", "-p", "no:cacheprovider", f"--timeout={test_seconds}", f"--basetemp={self._tests}"]
        command = [sys.executable, "-c", RUNNER, origins, *options, *tests]
        began = time.monotonic()
        code, output = self._execute(command, seconds)
        return Outcome(_verdict(code, output), time.monotonic() - began, output)

    def run_without(self, guard: Guard) -> Outcome:
        """Run the guard's test without its line; the copy is restored afterwards."""
        path = self._tree / guard.file
        source = path.read_text(encoding="utf-8")
        try:
            changed = mutated(source, guard)
        except (ValueError, SyntaxError) as error:
            return Outcome(Verdict.ERROR, 0.0, str(error))
        with _written(path, changed, source):
            return self.run([guard.test], [guard], guard.seconds, HANG_SECONDS)

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
    if code == PASSED:
        return Verdict.GREEN
    has_failed = re.search(r"^1 failed\b", output, re.MULTILINE)  # pytest's last line, or that of a hang
    if code != FAILED or not has_failed:
        return Verdict.ERROR
    return Verdict.HANG if "Failed: Timeout (>" in output or HUNG in output else Verdict.RED


class Copies:
    """Several copies of the tree, used side by side: most of a test's time is spent on waiting."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: queue.Queue[TreeCopy] = queue.Queue()
        for number in range(count):
            self._free.put(TreeCopy(folder / str(number)))

    def run_unchanged(self, tests: list[str], guards: list[Guard]) -> Outcome:
        with self._one() as copy:
            return copy.run(tests, guards, SLOW_TEST_SECONDS, WHOLE_SECONDS)

    def run_without(self, guard: Guard) -> Verdict:
        with self._one() as copy:
            outcome = copy.run_without(guard)
        line = guard.line.strip().splitlines()[0]
        print(f"{outcome.verdict:5} {outcome.seconds:5.1f} s  {guard.rule:4} {guard.file}  {line}", flush=True)
        if outcome.verdict is Verdict.ERROR:
            print(textwrap.indent(_tail(outcome.output), "      "))
        return outcome.verdict

    @contextlib.contextmanager
    def _one(self) -> Generator[TreeCopy]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


def check(guards: list[Guard], folder: Path, jobs: int) -> bool:
    """Whether every test passes on the unchanged tree, and fails without the line that it guards."""
    tests = list(dict.fromkeys(guard.test for guard in guards))
    print(f"{len(guards)} guards, {len(tests)} tests; first with every line …", flush=True)
    copies, began = Copies(folder, jobs), time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        for unchanged in pool.map(copies.run_unchanged, _parts(tests, jobs), itertools.repeat(guards)):
            if unchanged.verdict is not Verdict.GREEN:
                print(f"not green without any change:\n{_tail(unchanged.output)}")
                return False
        print(f"green after {time.monotonic() - began:.0f} s; now without each line in turn", flush=True)
        verdicts = list(pool.map(copies.run_without, guards))
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
    print(f"{counts} after {time.monotonic() - began:.0f} s")
    return all(verdict in (Verdict.RED, Verdict.HANG) for verdict in verdicts)


def _parts(tests: list[str], count: int) -> list[list[str]]:
    """The tests divided by file, in turn: those that share a cluster stay together."""
    files = {test.partition("::")[0]: None for test in tests}
    parts: list[list[str]] = [[] for _ in range(count)]
    for number, file in enumerate(files):
        parts[number % count].extend(test for test in tests if test.startswith(f"{file}::"))
    return [part for part in parts if part]


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-25:])


def main() -> int:
    parser = argparse.ArgumentParser(description="Take each guarded line away in turn and expect its test to fail.")
    parser.add_argument("--only", metavar="RULE", default="", help="only the guards of this rule, such as I3")
    parser.add_argument("--tests", metavar="PREFIX", default="tests/", help="only the tests below, such as tests/bus")
    parser.add_argument("--jobs", type=int, default=3, help="how many guards are tried side by side (3)")
    options = parser.parse_args()
    guards = [
        guard for guard in read_guards() if options.only in ("", guard.rule) and guard.test.startswith(options.tests)
    ]
    if not guards:
        parser.error(f"no guard of {options.only or 'any rule'} in {options.tests}")
    with tempfile.TemporaryDirectory(prefix="muster-mutate-") as folder:
        return 0 if check(guards, Path(folder).resolve(), options.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
