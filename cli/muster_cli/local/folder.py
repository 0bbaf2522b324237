"""The folder `.muster`: which `muster up` runs here and its address, with a lock so that no second one starts.

The lock is the kernel's: it ends with its process and never goes stale. The process id in its file is for people.
"""

import fcntl
import json
import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from muster_bus.process.settings import Settings
from muster_protocol.errors import Misconfigured

FOLDER = Path(".muster")
LOCK_TRIES = 10  # `is_running` in another process holds the lock for a moment
LOCK_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Address:
    """Where a running `muster up` is reached."""

    nats_url: str
    http_url: str
    team: str
    pid: int


def command(folder: Path | None = None) -> str:
    """`muster` as a shell in this folder can run it, or in ours: by its bare name, else by where it lies."""
    beside = Path(sys.executable).parent / "muster"
    found = shutil.which("muster")
    if found is not None and Path(found).resolve() == beside.resolve():
        return "muster"
    here = folder or Path.cwd()
    return str(beside.relative_to(here)) if beside.is_relative_to(here) else str(beside)


class Lock:
    """This process alone works in the folder, until it ends."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = folder
        self._what = what
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = (self._folder / "lock").open("a+")
        except OSError as error:
            raise Misconfigured(f"cannot use the folder {self._folder}: {error.strerror}") from None
        for _ in range(LOCK_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            holder = _holder(self._folder)
            file.close()
            raise Misconfigured(
                f"{self._what} is already running in {self._folder.resolve()} (process {holder}); stop it first"
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def is_running(folder: Path) -> bool:
    """Whether somebody holds the folder's lock now."""
    try:
        file = (folder / "lock").open()
    except OSError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _holder(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "lock").read_text().strip() or "unknown"
    return "unknown"


def write_address(folder: Path, address: Address) -> None:
    part = folder / "address.json.part"
    part.write_text(json.dumps(asdict(address), indent=2) + "\n")
    part.replace(folder / "address.json")


def forget_address(folder: Path) -> None:
    (folder / "address.json").unlink(missing_ok=True)


def read_address(folder: Path = FOLDER) -> Address | None:
    """The address of the `muster up` that runs in this folder; what a dead one left behind does not count."""
    if not is_running(folder):
        return None
    try:
        return Address(**json.loads((folder / "address.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def nats_url(settings: Settings) -> str:
    """The broker that MUSTER_NATS_URL names, else that of this folder's `muster up`, else the usual one."""
    address = _address_here(settings)
    return address.nats_url if address else settings.broker_url


def http_url(settings: Settings) -> str | None:
    """The coordinator of this folder's `muster up`, unless MUSTER_NATS_URL names a broker."""
    address = _address_here(settings)
    return address.http_url if address else None


def team_name(settings: Settings) -> str:
    """The team that MUSTER_TEAM names, else that of this folder's `muster up`, else `default`.

    Where MUSTER_NATS_URL names a broker, it is not this folder's.
    """
    if settings.team:
        return settings.team
    address = _address_here(settings)
    return address.team if address else "default"


def _address_here(settings: Settings) -> Address | None:
    return read_address() if settings.nats_url is None else None
