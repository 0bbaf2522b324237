"""A disk of a few megabytes for a broker, which a test can fill."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 8 * 1024 * 1024


@contextmanager
def mounted_disk(folder: Path) -> Generator[Path]:
    """Mounted for as long as the block lasts; the test is skipped where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here: that needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
