"""`muster demo`: a team compares three cloud providers before your eyes, in parallel and one task at a time."""

import time
from argparse import Namespace
from dataclasses import dataclass

from rich.console import Console
from rich.rule import Rule

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.demo.environment import DemoEnvironment
from muster_cli.demo.fault import Fault, verify
from muster_cli.exits import exit_of
from muster_cli.local.folder import FOLDER, Lock, command
from muster_cli.view.board import Board
from muster_cli.view.console import console
from muster_cli.view.follow import watched
from muster_cli.view.printing.terminal import styled
from muster_cli.view.render import ending_of, sentence, show_answer
from muster_cli.view.screen import Counter, Screen, screen_for
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, AnswerStatus, Request
from muster_protocol.status import explain

TEXT = (
    "Compare AWS, Azure and Google Cloud for a small company: research each provider, "
    "analyse price and service, and write a report"
)
DEADLINE_SECONDS = 60.0
DEMO_FOLDER = FOLDER / "demo"

WHAT_IS_REAL = (
    "What you saw: the processes, the broker, the graph of tasks and the times are real. The model is [bold]not an LLM"
    "[/]: it is Muster's offline model, which plans and works by rules, and the half second per answer stands in for "
    "the time that a model would take. The facts and prices are invented samples (examples/cloud); the figures in the "
    "report are computed from them."
)
NEXT_STEPS = (
    'Next: [bold]{muster} up[/], and [bold]{muster} ask "…"[/] in another terminal; with ANTHROPIC_API_KEY set the '
    "team thinks with Claude. Or see what a crash does: [bold]{muster} demo --kill worker[/] (or supervisor, broker)."
)


async def demo(given: Namespace, settings: Settings) -> int:
    with Lock(DEMO_FOLDER, "muster demo"):
        supervisors = 2 if given.kill == "supervisor" else 1
        environment = DemoEnvironment(DEMO_FOLDER, settings.trace, supervisors)
        show = Demo(environment, console(), settings.jaeger_url)
        try:
            await show.start()
            return await show.comparison() if given.kill is None else await show.recovery(given.kill)
        finally:
            await environment.stop()


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo does and prints."""

    environment: DemoEnvironment
    out: Console
    jaeger_url: str | None

    async def start(self) -> None:
        out, environment = self.out, self.environment
        out.print(styled("[bold]Muster[/]: a team of agents at work, every service in a process of its own"))
        seconds = await environment.start()
        out.print(f"  nats-server at {environment.server.url}")
        for name in environment.services:
            where = f", http://127.0.0.1:{environment.http_port}" if name == "coordinator" else ""
            out.print(f"  {name:<14}process {environment.processes.pid(name)}{where}")
        out.print(f"  ready after {seconds:.1f} s; logs in {DEMO_FOLDER}/", style="dim")
        out.print(styled("\n[bold]The request[/]: {text}\n", text=TEXT), soft_wrap=True)

    async def comparison(self) -> int:
        """The same request twice: with the team in parallel, and with one task in flight."""
        began = time.monotonic()
        board = await self._send(None)
        answer = await watched(self.environment.client, board, self._screen(board))
        seconds = time.monotonic() - began
        self._show(board, answer)
        if answer.status is not AnswerStatus.DONE:
            return exit_of(answer.status)
        self.out.print("\nOnce more, with one task in flight instead of all that can run …")
        began = time.monotonic()
        board = await self._send(1)
        alone = await watched(self.environment.client, board, Counter(self.out, board))
        alone_seconds = time.monotonic() - began
        self.out.print(
            f"{seconds:.1f} s with the team in parallel, {alone_seconds:.1f} s one task at a time: "
            f"{alone_seconds / seconds:.1f} × faster\n",
            style="bold green",
        )
        self.out.print(styled(f"{WHAT_IS_REAL}\n\n{NEXT_STEPS}", muster=command()))
        return exit_of(alone.status)

    async def recovery(self, victim: str) -> int:
        """The request once, with one process killed in the middle of it."""
        fault = Fault(victim, self.environment)
        board = await self._send(None)
        answer = await watched(self.environment.client, board, self._screen(board), fault.kill_once)
        self._show(board, answer)
        self.out.print(Rule(style="dim"))
        is_verified = await verify(self.out, self.environment, board.state.request_id, fault)
        self.out.print(styled(f"\n{WHAT_IS_REAL}"))
        return exit_of(answer.status) if is_verified else Exit.FAILED

    def _screen(self, board: Board) -> Screen:
        return screen_for(self.out, board, self.environment.client.bus.clock.now)

    async def _send(self, in_flight: int | None) -> Board:
        request = Request(text=TEXT, deadline_seconds=DEADLINE_SECONDS, in_flight=in_flight)
        return Board(RequestState(await self.environment.client.send(request)))

    def _show(self, board: Board, answer: Answer) -> None:
        self.out.print()
        show_answer(self.out, answer)
        self.out.print(ending_of(answer, self.jaeger_url), soft_wrap=True)
        if answer.status is not AnswerStatus.DONE:
            now = self.environment.client.bus.clock.now()
            self.out.print(sentence(explain(board.state, board.seen(now))), soft_wrap=True)
