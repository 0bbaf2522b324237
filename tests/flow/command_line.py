"""The `muster` command in a folder of its own, as a person or a script runs it."""

import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from muster_bus.broker.embedded import free_port

LIMIT_SECONDS = 60
TEAM = """\
team: small
supervisor: {model: offline}
roles:
  - {name: good, description: Does what it is told, run: "roles:good"}
  - {name: bad, description: Fails, run: "roles:bad"}
  - {name: slow, description: Takes its time, run: "roles:slow"}
"""
ROLES = """\
import asyncio

async def good(task, ctx):
    return f"did {task.description}"

async def bad(task, ctx):
    raise ValueError("the mill is broken")

async def slow(task, ctx):
    for step in range(36000):
        ctx.progress(f"step {step}")
        await asyncio.sleep(0.1)
"""


class Here:
    """A folder with a team file, in which commands are run."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        ours = ("MUSTER_", "ANTHROPIC_", "OPENAI_", "OTEL_")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | env
        (folder / "team.yaml").write_text(TEAM)
        (folder / "roles.py").write_text(ROLES)

    def run(self, *words: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            _command(words),
            cwd=self.folder,
            env={**self.env, **env},
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    def on_a_terminal(self, *words: str, columns: int = 80, **env: str) -> str:
        """What a person sees: the bytes that the command writes to a terminal of this width, colours and all."""
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        environment = {**self.env, "TERM": "xterm-256color", **env}
        with subprocess.Popen(
            _command(words), cwd=self.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            written = b""
            with suppress(OSError):  # as Linux says that nobody has the other end any more
                while block := os.read(ours, 65536):
                    written += block
            os.close(ours)
            process.wait(LIMIT_SECONDS)
        return written.decode().replace("\r\n", "\n")

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Its standard error goes to `<command>.txt`."""
        with (self.folder / f"{words[0]}.txt").open("w") as output:
            return subprocess.Popen(
                _command(words),
                cwd=self.folder,
                env={**self.env, **env},
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def printed(self, command: str) -> str:
        """What a command that was started has printed on standard error."""
        return (self.folder / f"{command}.txt").read_text()

    def document(self, *words: str) -> dict[str, Any]:
        ran = self.run(*words, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    @contextmanager
    def up(self, *words: str, **env: str) -> Generator[tuple[subprocess.Popen[str], str]]:
        """A running `muster up` and what it printed when it was ready."""
        process, printed = self._up(*words, **env)
        with process:
            try:
                yield process, printed
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(LIMIT_SECONDS)

    def _up(self, *words: str, **env: str) -> tuple[subprocess.Popen[str], str]:
        """On ports that are still free when it comes to them: seconds pass until then, and others look for some too."""
        for _ in range(5):
            ports = () if "--port" in words else ("--port", str(free_port()), "--http-port", str(free_port()))
            process = self.start("up", *ports, *words, **env)
            try:
                return process, read_until(process, "Ctrl-C stops it")
            except AssertionError:
                with process:
                    process.wait(LIMIT_SECONDS)
                if not ports or "in use" not in self.printed("up"):
                    raise
        raise AssertionError("five pairs of free ports were taken in a row")

    def broker_pid(self) -> int:
        return int((self.folder / ".muster" / "nats" / "nats.pid").read_text())


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What a process prints up to a line with these words; the test's own limit bounds the wait."""
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if words in line:
            return printed
    raise AssertionError(f"it ended without {words!r}: {printed}")


def is_alive(pid: int) -> bool:
    """A process that ended counts as dead though nobody has asked for its exit code."""
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    state = subprocess.run(["ps", "-p", str(pid), "-o", "stat="], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def plan(*tasks: tuple[str, str] | tuple[str, str, str]) -> str:
    """(id, tag) or (id, tag, dependency), as JSON."""
    listed = [{"id": t[0], "description": f"task {t[0]}", "tag": t[1], "dependencies": list(t[2:])} for t in tasks]
    return json.dumps({"tasks": [{**task, "max_attempts": 1} for task in listed]})


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "muster_cli", *words]


def wait_for_words(file: Path, words: str) -> None:
    """Wait until a file that is being written holds these words."""
    with subprocess.Popen(["tail", "-n", "+1", "-f", file], stdout=subprocess.PIPE, text=True) as tail:
        read_until(tail, words)
        tail.kill()
