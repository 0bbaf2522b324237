"""`python -m muster_testing.starter FD`: it has imported what services need, and forks for each order to start one.

Imports are nine tenths of what the start of a service costs, and a test starts two or three of them. What comes out is
a process of its own that reads its environment, its arguments and its team file anew. Linux only: elsewhere a process
that has used the system's libraries must not go on after a fork.
"""

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

from muster_bus.broker.embedded import die_with_parent
from muster_cli.main import run
from muster_testing.starting import NUMBER, Order

# No module of a user, whose side effects every process must see for itself.
IMPORTED = (
    "muster_agent.models.offline.model",
    "muster_agent.team.file",
    "muster_bus.process.logging",
    "muster_bus.process.service",
    "muster_bus.process.settings",
    "muster_coordinator.coordinator",
    "muster_supervisor.supervisor",
    "muster_testing.crash",
    "muster_testing.roles",
    "muster_worker.executor",
    "muster_worker.worker",
)
MAX_ORDER = 256 * 1024  # a socket of the kernel takes no longer message without being asked


class Starter:
    """Forks for each order, and reports how each service ended."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._reports: dict[int, int] = {}  # by process
        signal.signal(signal.SIGCHLD, self._report_ends)

    def until_forked(self) -> Order | None:
        """Fork until nobody gives orders any more; in a service's process, return what it is to be."""
        while True:
            written, fds, _, _ = socket.recv_fds(self._orders, MAX_ORDER, 2)
            if not written:
                return None
            output, report = fds
            set_parent_death_signal = die_with_parent()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until its report is known
            if pid := os.fork():
                self._reports[pid] = report
                os.write(report, NUMBER.pack(pid))
                os.close(output)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            if set_parent_death_signal is not None:
                set_parent_death_signal()
            self._leave_behind(output, report)
            return Order.read(written)

    def _leave_behind(self, output: int, report: int) -> None:
        """A service has standard input, output and error, and nothing of its starter's."""
        for number in (1, 2):
            os.dup2(output, number)
        for fd in (output, report, *self._reports.values()):
            os.close(fd)
        self._orders.close()

    def _report_ends(self, _number: int, _frame: FrameType | None) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                report = self._reports.pop(ended[0])
                with suppress(BrokenPipeError):  # nobody asks any more
                    os.write(report, NUMBER.pack(os.waitstatus_to_exitcode(ended[1])))
                os.close(report)


def _become(order: Order) -> None:
    """Let this process be as if it had been started for the order."""
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.env)
    named = order.env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = dict.fromkeys([order.folder, *filter(None, named), *sys.path])
    sys.argv[1:] = order.words
    importlib.invalidate_caches()


def main() -> int:
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a service would copy every page that is shared
    order = Starter(socket.socket(fileno=int(sys.argv[1]))).until_forked()
    if order is None:
        return 0
    _become(order)
    if order.die_at:
        importlib.import_module("muster_testing.crash").die_at(order.die_at)
    return run(order.words)


if __name__ == "__main__":
    sys.exit(main())
