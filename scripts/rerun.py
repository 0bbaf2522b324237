"""Run pytest, and each test that failed once more, alone: `python scripts/rerun.py PYTEST [OPTION…]`, without paths.

The run is green if every one of them passes then; each is named as FLAKY. It is red if one fails again, if too many
failed, and if tests may be missing from the run: after an error of collection, an interruption or a NOT RUN.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MOST = 5  # more than that is a broken change, and not a test that met a busy machine


def first_run(command: list[str]) -> tuple[int, list[str]]:
    """The exit code and the ids of what failed, from a cache of this run alone."""
    with tempfile.TemporaryDirectory(prefix="muster-rerun-") as cache:
        code = subprocess.run([*command, "-o", f"cache_dir={cache}"], check=False).returncode
        noted = Path(cache) / "v" / "cache" / "lastfailed"
        failed: list[str] = list(json.loads(noted.read_text(encoding="utf-8"))) if noted.exists() else []
    return code, failed


def passes_alone(command: list[str], test: str) -> bool:
    """Whether the test passes in a process of its own, with no other beside it."""
    print(f"\nonce more, alone: {test}", flush=True)
    return subprocess.run([*command, "-n", "0", test], check=False).returncode == pytest.ExitCode.OK


def has_second_try(code: int, failed: list[str]) -> bool:
    """Whether these failures are few, and nothing else went wrong."""
    is_collected = all("::" in test for test in failed)  # a file or folder that could not be read has no such part
    return code == pytest.ExitCode.TESTS_FAILED and 0 < len(failed) <= MOST and is_collected


def main() -> int:
    command = sys.argv[1:]
    code, failed = first_run(command)
    if not has_second_try(code, failed):
        return code
    passed = {test: passes_alone(command, test) for test in failed}
    print()
    for test, is_flaky in passed.items():
        print("FLAKY" if is_flaky else "FAILED TWICE", test)
    return 0 if all(passed.values()) else code


if __name__ == "__main__":
    sys.exit(main())
