"""What the demo breaks while you watch, and the proof that nothing came of it."""

from collections import Counter

from rich.console import Console

from muster_bus.log import read_log
from muster_cli.demo.environment import DemoEnvironment
from muster_cli.view.board import Board, name_of
from muster_protocol.fold import TaskStatus, fold
from muster_protocol.messages import Answer, Result, ResultStatus

BROKER_PAUSE_SECONDS = 1.0


class Fault:
    """Kills one process with SIGKILL, once, as soon as some tasks are done and others run."""

    def __init__(self, what: str, stage: DemoEnvironment) -> None:
        self._what = what
        self._stage = stage
        self.told = ""

    def kill_once(self, board: Board) -> str | None:
        """Asked after everything that happens; returns what was done."""
        if self.told or not board.assignments:
            return None
        if not any(task.status is TaskStatus.DONE for task in board.state.tasks.values()):
            return None
        running = ", ".join(board.assignments)
        match self._what:
            case "worker":
                victim = name_of(next(iter(board.assignments.values())).worker)
                running = ", ".join(
                    task for task, assignment in board.assignments.items() if name_of(assignment.worker) == victim
                )
                self.told = f"⚡ {self._kill(victim)} while it works on {running}; the other worker has to finish it"
            case "supervisor":
                owner = f"supervisor-{board.state.owner}"
                self.told = f"⚡ {self._kill(owner)}, the owner, while {running} run; the other one has to take over"
            case _:
                pid = self._stage.server.pid
                self._stage.restart_broker(BROKER_PAUSE_SECONDS)
                again = f"it is started again after {BROKER_PAUSE_SECONDS:g} s"
                self.told = f"⚡ kill -9 {pid}: nats-server, while {running} run; {again}"
        return self.told

    def _kill(self, name: str) -> str:
        pid = self._stage.processes.pid(name)
        self._stage.processes.kill(name)
        return f"kill -9 {pid}: {name}"


async def verify(out: Console, stage: DemoEnvironment, request_id: str, fault: Fault) -> bool:
    """Read the stream and count: one answer, and one counted result for each task."""
    entries = await read_log(stage.client.bus, request_id, from_leader=True)
    state = fold(request_id, entries)
    answers = sum(isinstance(entry.body, Answer) for entry in entries)
    results = [entry.body for entry in entries if isinstance(entry.body, Result)]
    counted = Counter(
        task_id
        for task_id, task in state.tasks.items()
        for attempt in task.attempts
        if attempt.result is not None and attempt.result.status is ResultStatus.DONE
    )
    once = sum(count == 1 for count in counted.values())
    has_struck = bool(fault.told)
    _line(out, has_struck, fault.told.removeprefix("⚡ ") or "it was over before anything could be killed")
    _line(out, answers == 1, f"{answers} answer in the log")
    _line(
        out,
        once == len(state.tasks),
        f"{once} of {len(state.tasks)} tasks with exactly one counted result ({len(results)} results in the log)",
    )
    return has_struck and answers == 1 and once == len(state.tasks)


def _line(out: Console, is_well: bool, text: str) -> None:
    out.print(f"{'✓' if is_well else '✗'} {text}", style="green" if is_well else "red", highlight=False, soft_wrap=True)
