"""`muster demo`: a team compares three cloud providers before your eyes, in parallel and one task at a time."""

import time
from argparse import Namespace
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from muster_cli.demo.environment import DemoEnvironment
from muster_cli.demo.fault import Fault, verify
from muster_cli.exits import Exit, exit_of
from muster_cli.local.folder import FOLDER, Lock, command
from muster_cli.traces import traced
from muster_cli.view.board import Board
from muster_cli.view.console import console
from muster_cli.view.follow import watched
from muster_cli.view.render import ending_of, show_answer
from muster_cli.view.screen import Counter, screen_for
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, AnswerStatus, Request

TEXT = (
    "Compare AWS, Azure and Google Cloud for a small company: research each provider, "
    "analyse price and service, and write a report"
)
DEADLINE_SECONDS = 60.0

HONESTLY = (
    "What you saw: the processes, the broker, the graph of tasks and the times are real. The model is [bold]not an LLM"
    "[/]: it is Muster's offline model, which plans and works by rules, and the half second per answer stands in for "
    "the time that a model would take. The facts and prices are invented samples (examples/cloud); the figures in the "
    "report are computed from them."
)
NEXT = (
    'Next: [bold]{muster} up[/], and [bold]{muster} ask "…"[/] in another terminal; with ANTHROPIC_API_KEY set the '
    "team thinks with Claude. Or see what a crash does: [bold]{muster} demo --kill worker[/] (or supervisor, broker)."
)


async def demo(given: Namespace) -> int:
    out = console()
    folder = FOLDER / "demo"
    with Lock(folder, "muster demo"):
        stage = DemoEnvironment(folder, supervisors=2 if given.kill == "supervisor" else 1)
        try:
            await _open(out, stage, folder)
            async with traced(stage.client):
                if given.kill is None:
                    return await _compare(out, stage)
                return await _survive(out, stage, Fault(given.kill, stage))
        finally:
            await stage.stop()


async def _open(out: Console, stage: DemoEnvironment, folder: Path) -> None:
    out.print("[bold]Muster[/]: a team of agents at work, every service in a process of its own", highlight=False)
    seconds = await stage.start()
    out.print(f"  nats-server at {stage.server.url}", highlight=False)
    for name in stage.services:
        where = f", http://127.0.0.1:{stage.http_port}" if name == "coordinator" else ""
        out.print(f"  {name:<14}process {stage.processes.pid(name)}{where}", highlight=False)
    out.print(f"  ready after {seconds:.1f} s; logs in {folder}/", style="dim", highlight=False)
    out.print(f"\n[bold]The request[/]: {TEXT}\n", highlight=False, soft_wrap=True)


async def _compare(out: Console, stage: DemoEnvironment) -> int:
    """The same request twice: with the team in parallel, and with one task in flight."""
    answer, seconds = await _run(out, stage, None)
    out.print()
    show_answer(out, answer)
    out.print(ending_of(answer), soft_wrap=True)
    if answer.status is not AnswerStatus.DONE:
        return exit_of(answer.status)
    out.print("\nOnce more, with one task in flight instead of all that can run …", highlight=False)
    alone, alone_seconds = await _run(out, stage, 1)
    out.print(
        f"[bold green]{seconds:.1f} s with the team in parallel, {alone_seconds:.1f} s one task at a time: "
        f"{alone_seconds / seconds:.1f} × faster[/]\n",
        highlight=False,
    )
    out.print(f"{HONESTLY}\n\n{NEXT.format(muster=command())}", highlight=False)
    return exit_of(alone.status)


async def _survive(out: Console, stage: DemoEnvironment, fault: Fault) -> int:
    """Once, with somebody killed in the middle of it."""
    board = Board(RequestState(await stage.client.send(_request(None))))
    answer = await watched(stage.client, board, screen_for(out, board), fault.kill_once)
    out.print()
    show_answer(out, answer)
    out.print(ending_of(answer), soft_wrap=True)
    out.print(Rule(style="dim"))
    has_held = await verify(out, stage, board.state.request_id, fault)
    out.print(f"\n{HONESTLY}", highlight=False)
    return exit_of(answer.status) if has_held else Exit.FAILED


async def _run(out: Console, stage: DemoEnvironment, in_flight: int | None) -> tuple[Answer, float]:
    began = time.monotonic()
    board = Board(RequestState(await stage.client.send(_request(in_flight))))
    screen = screen_for(out, board) if in_flight is None else Counter(out, board)
    answer = await watched(stage.client, board, screen)
    return answer, time.monotonic() - began


def _request(in_flight: int | None) -> Request:
    return Request(text=TEXT, deadline_seconds=DEADLINE_SECONDS, in_flight=in_flight)
