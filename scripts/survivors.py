"""Take every condition of the given files away in turn, and say which of them no test misses.

    python -m scripts.survivors [--sample N] [--seed N] [--jobs N] [--near] [--least PERCENT] FILE_OR_FOLDER …

`make mutate` tries the lines that tests say they guard; here a program picks, so that what nobody thought of shows. The
nearest tests run first: those that import the changed module, unit tests before those with a broker, then the other
tests of its package, then every test of whole services (`--near` leaves those out), at last the long tests of the file
that wait for `make sweep`. The first that fails, or hangs, has killed the change. One that survives them all is
printed: it needs a test that says why it is there, or it can go.

All conditions of the services take a night. `--sample` draws some of them, the same ones for the same seed.
"""

import argparse
import itertools
import queue
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scripts.conditions import Change, changes
from scripts.guarded_lines import ROOT
from scripts.nearest_tests import Nearest
from scripts.tree_copy import Limits, TreeCopy, Verdict

LIMITS = Limits(test=30, whole=240.0)  # of one test, and of one group of tests
QUICK, LONG = ("-m", "not sweep"), ("-m", "sweep")


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one change."""

    file: str
    change: Change
    verdict: Verdict
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict:5} {self.seconds:5.1f} s  {self.file}:{self.change}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Take every condition away in turn, and say which no test misses.")
    parser.add_argument("paths", nargs="+", metavar="FILE_OR_FOLDER", help="such as libs/protocol")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only so many of them, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--jobs", type=int, default=2, help="how many are tried side by side (2)")
    parser.add_argument("--near", action="store_true", help="without the tests of whole services")
    parser.add_argument("--least", type=float, default=85.0, metavar="PERCENT", help="that must be killed (85)")
    options = parser.parse_args()
    picked = _picked(options.paths)
    if not picked:
        parser.error("no condition in these paths")
    if options.sample:
        picked = random.Random(options.seed).sample(picked, min(options.sample, len(picked)))
    nearest = Nearest.of(ROOT, has_services=not options.near)
    with tempfile.TemporaryDirectory(prefix="muster-survivors-") as folder:
        copies = [TreeCopy(Path(folder).resolve() / str(number)) for number in range(options.jobs)]
        unchanged = copies[0].run(["--version"], {file for file, _ in picked}, LIMITS)
        if unchanged.verdict is not Verdict.GREEN:
            print(f"cannot be imported without any change:\n{unchanged.output}")
            return 1
        tried = _try_all(picked, nearest, copies)
    return _report(tried, options.least)


def _picked(paths: Iterable[str]) -> list[tuple[str, Change]]:
    """Every condition in these files and folders."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    files = [file for file in files if any(part.startswith("muster_") for part in file.parts)]
    return [(file.as_posix(), change) for file in files for change in changes(file.read_text(encoding="utf-8"))]


def _try_all(picked: list[tuple[str, Change]], nearest: Nearest, copies: list[TreeCopy]) -> list[Tried]:
    free: queue.Queue[TreeCopy] = queue.Queue()
    for copy in copies:
        free.put(copy)
    count = itertools.count(1)

    def attempt(one: tuple[str, Change]) -> Tried:
        copy = free.get()
        try:
            tried = _try(copy, *one, nearest)
        finally:
            free.put(copy)
        print(f"{next(count):4}/{len(picked)}  {tried}", flush=True)
        return tried

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(attempt, picked))


def _try(copy: TreeCopy, file: str, change: Change, nearest: Nearest) -> Tried:
    """Run one group of tests after the other until one misses the condition."""
    began, verdict = time.monotonic(), Verdict.GREEN
    groups = [[*QUICK, *tests] for tests in nearest.groups(file)]
    if nearest.has_services and (own := nearest.own(file)):
        groups.append([*LONG, *own])
    for tests in groups:
        verdict = copy.run_with(file, change.source, tests, LIMITS).verdict
        if verdict is not Verdict.GREEN:
            break
    return Tried(file, change, verdict, time.monotonic() - began)


def _report(tried: list[Tried], least: float) -> int:
    """The survivors, and how many were killed, by package and in all; a change that cannot be imported is killed."""
    survivors = [one for one in tried if one.verdict is Verdict.GREEN]
    for one in survivors:
        print(f"survived  {one.file}:{one.change}")
    packages = Counter(_package(one) for one in tried)
    lost = Counter(_package(one) for one in survivors)
    for package, count in sorted(packages.items()):
        print(f"{package}: {count - lost[package]} of {count} killed, {100 * (1 - lost[package] / count):.0f} %")
    percent = 100 * (1 - len(survivors) / len(tried))
    print(f"in all {len(tried) - len(survivors)} of {len(tried)} killed, {percent:.1f} %")
    return 0 if percent >= least else 1


def _package(one: Tried) -> str:
    return "/".join(Path(one.file).parts[:2])


if __name__ == "__main__":
    sys.exit(main())
