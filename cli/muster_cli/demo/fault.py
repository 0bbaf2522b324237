"""The process that the demo kills, and the check that the request was answered all the same."""

from collections import Counter

from rich.console import Console

from muster_bus.log import read_log
from muster_cli.demo.environment import DemoEnvironment
from muster_cli.view.board import Board, name_of
from muster_cli.view.news import News, NewsKind
from muster_protocol.fold import TaskPhase, fold
from muster_protocol.messages import Answer, Result, ResultStatus

BROKER_PAUSE_SECONDS = 1.0


class Fault:
    """Kills one process with SIGKILL, once, as soon as some tasks are done and others run."""

    def __init__(self, victim: str, environment: DemoEnvironment) -> None:
        self._victim = victim
        self._environment = environment
        self.description = ""  # of what was killed; empty until then

    def kill_once(self, board: Board) -> News | None:
        """Called after every update; returns the kill when it happened now."""
        is_done = any(task.phase is TaskPhase.DONE for task in board.state.tasks.values())
        if self.description or not board.assignments or not is_done:
            return None
        match self._victim:
            case "worker":
                self.description = self._kill_worker(board)
            case "supervisor":
                self.description = self._kill_supervisor(board)
            case _:
                self.description = self._kill_broker(board)
        return News(NewsKind.FAULT, self.description)

    def _kill_worker(self, board: Board) -> str:
        name = name_of(next(iter(board.assignments.values())).worker)
        tasks = [task for task, assignment in board.assignments.items() if name_of(assignment.worker) == name]
        return f"{self._kill(name)} while it works on {', '.join(tasks)}; the other worker has to finish it"

    def _kill_supervisor(self, board: Board) -> str:
        killed = self._kill(f"supervisor-{board.state.owner}")
        return f"{killed}, the owner, while {', '.join(board.assignments)} run; the other one has to take over"

    def _kill_broker(self, board: Board) -> str:
        pid = self._environment.server.pid
        self._environment.restart_broker(BROKER_PAUSE_SECONDS)
        again = f"it is started again after {BROKER_PAUSE_SECONDS:g} s"
        return f"kill -9 {pid}: nats-server, while {', '.join(board.assignments)} run; {again}"

    def _kill(self, name: str) -> str:
        pid = self._environment.processes.pid(name)
        self._environment.processes.kill(name)
        return f"kill -9 {pid}: {name}"


async def verify(out: Console, environment: DemoEnvironment, request_id: str, fault: Fault) -> bool:
    """Read the stream and count: one answer, and one counted result for each task."""
    entries = await read_log(environment.client.bus, request_id, from_leader=True)
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
    is_killed = bool(fault.description)
    _line(out, is_killed, fault.description or "it was over before anything could be killed")
    _line(out, answers == 1, f"{answers} answer in the log")
    _line(
        out,
        once == len(state.tasks),
        f"{once} of {len(state.tasks)} tasks with exactly one counted result ({len(results)} results in the log)",
    )
    return is_killed and answers == 1 and once == len(state.tasks)


def _line(out: Console, is_well: bool, text: str) -> None:
    out.print(f"{'✓' if is_well else '✗'} {text}", style="green" if is_well else "red", soft_wrap=True)
