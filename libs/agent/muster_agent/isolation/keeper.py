"""Keeps one process that runs a team's functions, and ends it together with every process that came of it.

A program that the worker starts by its path, with the standard library alone, so that it stays small and nothing that
it does can fail in strange code. It adopts what the process leaves behind (a subreaper), also what made itself a
session of its own. It ends all of it when the worker says so, dies or closes the connection, when the process ends,
and when all of it together uses too much memory. Elsewhere than on Linux it ends the process group alone.
"""

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

IS_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.25  # between two looks at the memory of a call that lasts …
LOOK_SHARE = 20  # … and never more than a twentieth of a core: a look reads all of /proc
SWEEP_SECONDS = 5.0  # for what hangs in the kernel, or belongs to somebody else
AGAIN_SECONDS = 0.002
SPARE_MB = 32  # above the limit, so that a process that has reached it can still say so
MAX_FILES = 1024
NICE = 10  # the worker and its neighbours come first
FIRST_TO_DIE = "500"  # where memory is short, this process rather than the worker
_PARENT, _SIZE = 1, 21  # fields of /proc/<pid>/stat behind the name: the parent, and the resident pages


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[1])
    control = socket.socket(fileno=given["control"])
    wake, wake_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.signal(signal.SIGTERM, _nothing)
    _ask_kernel(PR_SET_CHILD_SUBREAPER, 1)
    _ask_kernel(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != given["worker"]:  # it died before the kernel knew
        return
    child = os.fork()
    if child == 0:
        for descriptor in (wake, wake_end):
            os.close(descriptor)
        control.close()
        _become(given)
    os.close(given["calls"])
    with Path(os.devnull).open("wb") as nowhere:
        for stream in (1, 2):  # the child's alone, so that they end with it
            os.dup2(nowhere.fileno(), stream)
    ending = _watch(control, wake, child, given["memory_mb"])
    ending["others"] = sweep(child)
    with suppress(OSError):
        control.settimeout(SWEEP_SECONDS)
        control.sendall(json.dumps(ending).encode() + b"\n")


def _become(given: dict[str, Any]) -> None:
    """Be the process that runs functions; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()  # a role that ends its own process group does not end the keeper
        _ask_kernel(PR_SET_PDEATHSIG, signal.SIGKILL)
        _limit(given["memory_mb"])
        import site

        site.main()  # what the keeper did without
        sys.path[:] = given["path"]
        from muster_agent.isolation.inside import serve

        serve(given["calls"], given["memory_mb"])
        code = 0
    except BaseException as error:  # noqa: BLE001 - the fork must never run on as a keeper
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _limit(memory_mb: int) -> None:
    if IS_LINUX:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(FIRST_TO_DIE)
    with suppress(OSError):
        os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MAX_FILES if files == resource.RLIM_INFINITY else min(MAX_FILES, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(OSError, ValueError):  # not known everywhere
        # Not RLIMIT_AS: threads and other languages reserve much more than they use.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, (memory_mb + SPARE_MB) << 20))


def _watch(control: socket.socket, wake: int, child: int, memory_mb: int) -> dict[str, Any]:
    """Until it is told to end, or has to end it; says why."""
    is_looking, look_at = False, 0.0
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = dict(poll.poll(LOOK_SECONDS * 1000 if is_looking else None))
        if wake in ready:
            signals = os.read(wake, 4096)
            if (status := _reap(child)) is not None:
                return {"status": status}
            if signal.SIGTERM in signals:
                return {}
        if control.fileno() in ready:
            said = _heard(control)
            if not said:
                return {}
            if b"?" in said:
                left = json.dumps({"left": len(descendants().keys() - {child})})
                control.sendall(left.encode() + b"\n")
            is_looking = {b"+": True, b"-": False}.get(said.replace(b"?", b"")[-1:], is_looking)
        if is_looking and (began := time.monotonic()) >= look_at:  # also while its processes keep the keeper busy
            if (used := megabytes(memory_mb)) > memory_mb:
                return {"used_mb": used}
            look_at = began + max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - began))


def _heard(control: socket.socket) -> bytes:
    try:
        return control.recv(4096)
    except OSError:  # the worker is gone, and what it had not read yet with it
        return b""


def _reap(child: int) -> int | None:
    """Bury what has ended; how the child did, if it was among it."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                found = ended[1]
    return found


def descendants() -> dict[int, int]:
    """Every living process that came of this one, with its resident pages; what lost its parents was adopted here."""
    if not IS_LINUX:
        return {}
    by_parent: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    by_parent.setdefault(int(fields[_PARENT]), []).append((int(name), int(fields[_SIZE])))
    found: dict[int, int] = {}
    new = by_parent.get(os.getpid(), [])
    while new:
        found.update(new)
        new = [each for pid, _ in new for each in by_parent.get(pid, []) if each[0] not in found]
    return found


def megabytes(enough: int) -> int:
    """What all of them use; pages that they share count once, if without that it were more than enough."""
    sizes = descendants()
    resident = sum(sizes.values()) * os.sysconf("SC_PAGE_SIZE") >> 20
    return resident if resident <= enough else sum(map(_own_kilobytes, sizes)) >> 10


def _own_kilobytes(pid: int) -> int:
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1])
    return 0  # it has ended meanwhile


def sweep(child: int) -> int:
    """End all of them; returns how many there were beside the child. First they stand still: what forks cannot flee."""
    end = time.monotonic() + SWEEP_SECONDS
    still = set[int]()
    while (new := descendants().keys() - still) and time.monotonic() < end:
        _send(signal.SIGSTOP, new)
        still |= new
    if not IS_LINUX:
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    while time.monotonic() < end:
        _send(signal.SIGKILL, descendants())
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break  # none is left
        time.sleep(AGAIN_SECONDS)
    return len(still - {child})


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended meanwhile, or belongs to somebody else
            os.kill(pid, number)


def _ask_kernel(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _nothing(*_: object) -> None:
    """A signal only wakes the keeper."""


if __name__ == "__main__":
    main()
