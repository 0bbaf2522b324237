"""Take each line that a test guards away in turn and expect that test to fail.

    python -m scripts.mutate [--only RULE] [--tests PREFIX] [--jobs N]

A test says beside itself which line it guards (`@guards`, see tests/guards.py). The lines are removed in a copy of the
tree, so the tree itself is never broken. A guard is red when its test fails without the line, and a hang counts as red.
A changed file that cannot be imported, or a test that does not exist, is an error of the guard.
"""

import argparse
import contextlib
import itertools
import queue
import sys
import tempfile
import textwrap
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.guarded_lines import ROOT, Guard, mutated, read_guards
from scripts.tree_copy import Limits, Outcome, TreeCopy, Verdict

HANG_SECONDS = 90.0  # the limit of the whole run of one guard, for a test that its own limit does not end
UNCHANGED = Limits(test=60, whole=600.0)  # of one test, and of all together, while nothing is changed


def run_without(copy: TreeCopy, guard: Guard) -> Outcome:
    """Run the guard's test without its line."""
    try:
        changed = mutated((ROOT / guard.file).read_text(encoding="utf-8"), guard)
    except (ValueError, SyntaxError) as error:
        return Outcome(Verdict.ERROR, 0.0, str(error))
    return copy.run_with(guard.file, changed, [guard.test], Limits(guard.seconds, HANG_SECONDS))


class Copies:
    """Several copies of the tree, used side by side: most of a test's time is spent on waiting."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: queue.Queue[TreeCopy] = queue.Queue()
        for number in range(count):
            self._free.put(TreeCopy(folder / str(number)))

    def run_unchanged(self, tests: list[str], guards: list[Guard]) -> Outcome:
        with self._one() as copy:
            return copy.run(tests, [guard.file for guard in guards], UNCHANGED)

    def run_without(self, guard: Guard) -> Verdict:
        with self._one() as copy:
            outcome = run_without(copy, guard)
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
