"""A nats-server whose `muster` was killed still runs; a second one must never write to the same files."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from muster_protocol.errors import Misconfigured

STOP_SECONDS = 5.0


def pid_option(folder: Path) -> str:
    """The line of the server's configuration that makes it write its process id."""
    return f'pid_file: "{(folder / "nats.pid").as_posix()}"\n'


def end_orphan(folder: Path) -> bool:
    """End the server that still uses these files, if there is one. Call it only while holding the folder's lock."""
    try:
        pid = int((folder / "nats.pid").read_text())
    except (OSError, ValueError):
        return False
    if str(folder / "nats.conf") not in _command_of(pid):
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while str(folder / "nats.conf") in _command_of(pid):
        if time.monotonic() > end:
            raise Misconfigured(f"nats-server (process {pid}) still works in {folder} and does not stop; end it first")
        time.sleep(0.02)
    return True


def _command_of(pid: int) -> str:
    """The command line of a process; empty when there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, timeout=5, check=False
        ).stdout
    return ""
