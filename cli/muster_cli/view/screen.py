"""Shows a request while it is worked on: redrawn in place on a terminal, line by line anywhere else."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.live import Live

from muster_cli.view.board import Board
from muster_cli.view.news import BESIDE_THE_PLAN, News
from muster_cli.view.plain import line
from muster_cli.view.render import plan_of, progress_of
from muster_client import Update
from muster_protocol.counted import counted
from muster_protocol.fold import Entry, TaskPhase
from muster_protocol.plan import Plan

MAX_NEWS = 400  # characters of one line
Clock = Callable[[], float]  # the broker's time, by which deadlines and retries are told


class Screen(Protocol):
    """Where progress is shown."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None, /
    ) -> None: ...

    def show(self, news: News | None, seconds: float, /) -> None: ...


class Lines:
    """One line for each thing that happens."""

    def __init__(self, console: Console, board: Board) -> None:
        self._console = console
        self._board = board
        self._shown: Plan | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, news: News | None, seconds: float) -> None:
        if news is None:
            return
        self._console.print(f"{seconds:6.1f} s  {line(str(news), MAX_NEWS)}", soft_wrap=True)
        if self._shown is not self._board.state.plan:  # the first one, or the one that replaced it
            self._shown = self._board.state.plan
            self._console.print(plan_of(self._board.state))


class Redrawn:
    """The whole plan, redrawn in place."""

    def __init__(self, console: Console, board: Board, clock: Clock) -> None:
        self._board = board
        self._clock = clock
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, stack)

    def show(self, news: News | None, _seconds: float) -> None:
        if news is not None and news.kind in BESIDE_THE_PLAN:
            self._live.console.print(f"  {line(str(news), MAX_NEWS)}")

    def _render(self) -> RenderableType:
        return progress_of(self._board, self._clock())


class Counter:
    """How many tasks are done, and nothing else."""

    def __init__(self, console: Console, board: Board) -> None:
        self._board = board
        self._status = console.status("  …")

    def __enter__(self) -> Self:
        self._status.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._status.__exit__(kind, error, stack)

    def show(self, _news: News | None, seconds: float) -> None:
        tasks = self._board.state.tasks.values()
        done = sum(task.phase is TaskPhase.DONE for task in tasks)
        self._status.update(f"  {done} of {counted(len(tasks), 'task')} done after {seconds:.1f} s")


def screen_for(console: Console, board: Board, clock: Clock) -> Screen:
    return Redrawn(console, board, clock) if console.is_terminal else Lines(console, board)


def show_update(board: Board, screen: Screen, update: Update, now: float) -> None:
    """Put an update on the board and show it."""
    news = board.apply_entry(update) if isinstance(update, Entry) else board.apply_event(update.body, now)
    screen.show(news, update.time - (board.state.started_at or update.time))
