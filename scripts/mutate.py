"""Take each guarding line of tests/guards.toml away in turn and expect red: `python scripts/mutate.py [--only RULE]`.

It works on a copy of the tree, so the tree itself is never broken. A mutant is red when a named test fails or hangs;
one that cannot be imported, or whose tests do not exist, is an error of its guard.
"""

import argparse
import ast
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
import tomllib
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUARDS = ROOT / "tests" / "guards.toml"
TEST_SECONDS = 12  # a test that takes longer hangs: those named take four
HANG_SECONDS = 90.0  # … and so does one that does not even end then
SLOW_TEST_SECONDS = 60  # unless nothing was changed: then it has all the time it needs
WHOLE_SECONDS = 600.0  # for all tests together, before anything is changed
END_SECONDS = 10.0  # to put its brokers and services away after that
PASSED, FAILED, NOT_IMPORTED = 0, 1, 99
HUNG = "nothing came within"

# Imports the mutant first: a test's red must not be that of a file that does not even load, or is not the mutant.
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


@dataclass(frozen=True, slots=True)
class Guard:
    """A line that guards a rule, and the tests that say so when it is gone."""

    rule: str
    file: str
    line: str
    replace: str | None
    tests: tuple[str, ...]
    seconds: int

    @property
    def module(self) -> str:
        """`libs/bus/muster_bus/log.py` is imported as `muster_bus.log`."""
        parts = Path(self.file).with_suffix("").parts
        return ".".join(parts[next(n for n, part in enumerate(parts) if part.startswith("muster_")) :])


class Verdict(StrEnum):
    RED = "red"
    HANG = "hang"  # as good as red
    GREEN = "GREEN"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one run of tests."""

    verdict: Verdict
    seconds: float
    said: str


def read_guards(path: Path) -> list[Guard]:
    """The list, in its order."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["guard"]
    return [
        Guard(g["rule"], g["file"], g["line"], g.get("replace"), tuple(g["tests"]), g.get("seconds", TEST_SECONDS))
        for g in found
    ]


def mutated(source: str, guard: Guard) -> str:
    """The source without the guard: its text replaced, or the whole statement that begins in its line left out."""
    if (count := source.count(guard.line)) != 1:
        raise ValueError(f"{guard.file} has {count} times, not once: {guard.line}")
    if guard.replace is not None:
        changed = source.replace(guard.line, guard.replace)
    else:
        changed = _without_statement(source, source[: source.index(guard.line)].count("\n") + 1)
    ast.parse(changed, guard.file)
    return changed


def _without_statement(source: str, number: int) -> str:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt) and node.lineno == number]
    if len(found) != 1:
        raise ValueError(f"no statement begins in line {number}: say what the line becomes")
    statement = found[0]
    lines = source.splitlines(keepends=True)
    lines[number - 1 : statement.end_lineno] = [f"{' ' * statement.col_offset}pass\n"]
    return "".join(lines)


def copy_tree(target: Path) -> None:
    """Everything that is or could be committed, as it is now."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


class DemoEnvironment:
    """The copy in which the mutants run."""

    def __init__(self, folder: Path) -> None:
        self._tree = folder / "tree"
        self._tests = folder / "tests"
        copy_tree(self._tree)
        packages = [*self._tree.glob("libs/*"), *self._tree.glob("services/*"), self._tree / "cli"]
        # Before the packages that are installed from the tree itself, here and in every process that a test starts.
        path = os.pathsep.join(str(root) for root in (*packages, self._tree))
        self._env = {**os.environ, "PYTHONPATH": path}

    def run(self, tests: Iterable[str], guards: Iterable[Guard], test_seconds: int, seconds: float) -> Finding:
        """Run the tests, having seen that the guarded modules are those of the copy."""
        origins = ",".join(sorted({f"{guard.module}={self._tree / guard.file}" for guard in guards}))
        options = ["-x", "-p", "no:cacheprovider", f"--timeout={test_seconds}", f"--basetemp={self._tests}"]
        command = [sys.executable, "-c", RUNNER, origins, *options, *tests]
        began = time.monotonic()
        code, said = self._finished(command, seconds)
        return Finding(_verdict(code, said), time.monotonic() - began, said)

    def try_without(self, guard: Guard) -> Finding:
        """Take the guard away and run its tests; the copy is whole again afterwards."""
        path = self._tree / guard.file
        source = path.read_text(encoding="utf-8")
        try:
            changed = mutated(source, guard)
        except (ValueError, SyntaxError) as error:
            return Finding(Verdict.ERROR, 0.0, str(error))
        with _written(path, changed, source):
            return self.run(guard.tests, [guard], guard.seconds, HANG_SECONDS)

    def _finished(self, command: list[str], seconds: float) -> tuple[int, str]:
        """The exit code and the output; one that hangs is stopped and has failed."""
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
    """Without its compiled form, which is believed when size and second are the same."""
    path.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _communicated(process: "subprocess.Popen[str]", seconds: float) -> tuple[int, str]:
    said, _ = process.communicate(timeout=seconds)
    return process.returncode, said


def _verdict(code: int, said: str) -> Verdict:
    if code == PASSED:
        return Verdict.GREEN
    has_failed = re.search(r"^1 failed\b", said, re.MULTILINE)  # a hang, or pytest's last line; more may follow it
    if code != FAILED or not has_failed:
        return Verdict.ERROR
    return Verdict.HANG if "Failed: Timeout (>" in said or HUNG in said else Verdict.RED


class Stages:
    """Several copies side by side: most of a test's time is spent on waiting."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: queue.Queue[DemoEnvironment] = queue.Queue()
        for number in range(count):
            self._free.put(DemoEnvironment(folder / str(number)))

    def whole(self, tests: list[str], guards: list[Guard]) -> Finding:
        """All tests with all guards."""
        with self._one() as stage:
            return stage.run(tests, guards, SLOW_TEST_SECONDS, WHOLE_SECONDS)

    def tried(self, guard: Guard) -> Verdict:
        with self._one() as stage:
            finding = stage.try_without(guard)
        line = guard.line.strip().splitlines()[0]
        print(f"{finding.verdict:5} {finding.seconds:5.1f} s  {guard.rule:4} {guard.file}  {line}", flush=True)
        if finding.verdict is Verdict.ERROR:
            print(textwrap.indent(_tail(finding.said), "      "))
        return finding.verdict

    @contextlib.contextmanager
    def _one(self) -> Generator[DemoEnvironment]:
        stage = self._free.get()
        try:
            yield stage
        finally:
            self._free.put(stage)


def check(guards: list[Guard], folder: Path, jobs: int) -> bool:
    """Whether every test is green with all guards, and red without its own."""
    tests = list(dict.fromkeys(test for guard in guards for test in guard.tests))
    print(f"{len(guards)} guards, {len(tests)} tests; first everything as it is …", flush=True)
    stages, began = Stages(folder, jobs), time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        for whole in pool.map(stages.whole, _parts(tests, jobs), itertools.repeat(guards)):
            if whole.verdict is not Verdict.GREEN:
                print(f"not green without any change:\n{_tail(whole.said)}")
                return False
        print(f"green after {time.monotonic() - began:.0f} s; now without each line in turn", flush=True)
        verdicts = list(pool.map(stages.tried, guards))
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
    print(f"{counts} after {time.monotonic() - began:.0f} s")
    return all(verdict in (Verdict.RED, Verdict.HANG) for verdict in verdicts)


def _parts(tests: list[str], count: int) -> list[list[str]]:
    """Whole files, in turn: those that share a cluster stay together."""
    files = {test.partition("::")[0]: None for test in tests}
    parts: list[list[str]] = [[] for _ in range(count)]
    for number, file in enumerate(files):
        parts[number % count].extend(test for test in tests if test.startswith(f"{file}::"))
    return [part for part in parts if part]


def _tail(said: str) -> str:
    return "\n".join(said.splitlines()[-25:])


def main() -> int:
    parser = argparse.ArgumentParser(description="Take each guarding line away in turn and expect red.")
    parser.add_argument("--only", metavar="RULE", help="only the guards of this rule, such as I3")
    parser.add_argument("--jobs", type=int, default=3, help="mutants tried side by side (3)")
    options = parser.parse_args()
    rule: str | None = options.only
    guards = [guard for guard in read_guards(GUARDS) if rule is None or guard.rule == rule]
    if not guards:
        parser.error(f"no guard of {rule}")
    with tempfile.TemporaryDirectory(prefix="muster-mutate-") as folder:
        return 0 if check(guards, Path(folder).resolve(), options.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
