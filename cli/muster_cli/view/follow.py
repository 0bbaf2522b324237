"""Follows a request to its answer and shows it: progress on standard error, the answer on standard output."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from rich.console import Console

from muster_bus.background import supervised
from muster_bus.process.command import Exit
from muster_cli.exits import exit_of
from muster_cli.view.board import Board
from muster_cli.view.console import console
from muster_cli.view.news import News, NewsKind
from muster_cli.view.render import ending_of, show_answer
from muster_cli.view.screen import Screen, screen_for, show_update
from muster_cli.view.workers import live_tags
from muster_client import Client, NoAnswer
from muster_protocol.errors import BrokerAway
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, AnswerStatus
from muster_protocol.status import explain

SILENCE_SECONDS = 5.0  # without news for this long, show what is being waited for


async def follow(client: Client, request_id: str, *, is_json: bool, jaeger_url: str | None) -> int:
    """Show a request until it is answered; returns the exit code of its answer."""
    errors = console(is_error=True)
    board = Board(RequestState(request_id))
    errors.print(f"request {request_id}", style="dim", highlight=False)
    try:
        answer = await client.in_time(request_id, watched(client, board, screen_for(errors, board)))
    except NoAnswer as late:
        _show_late(errors, request_id, late.missing)
        return Exit.NO_ANSWER
    except (asyncio.CancelledError, BrokerAway):
        errors.print(
            f"the request goes on: `muster wait {request_id}` follows it, `muster cancel {request_id}` ends it",
            highlight=False,
        )
        raise
    if is_json:
        sys.stdout.write(answer.model_dump_json(by_alias=True, indent=2) + "\n")
    else:
        show_answer(console(), answer)
    errors.print(ending_of(answer, jaeger_url), soft_wrap=True)
    if answer.status is not AnswerStatus.DONE:
        errors.print(
            str(explain(board.state, board.seen(client.bus.clock.now()))), markup=False, highlight=False, soft_wrap=True
        )
    return exit_of(answer.status)


def _show_late(out: Console, request_id: str, missing: str) -> None:
    out.print(f"no answer in time: {missing}", style="red", markup=False, highlight=False, soft_wrap=True)
    again = f"`muster wait {request_id}` waits on, `muster cancel {request_id}` ends it"
    way_out = f"the request goes on as soon as `muster up` or a service is there: {again}"
    out.print(way_out, markup=False, highlight=False, soft_wrap=True)


async def watched(
    client: Client, board: Board, screen: Screen, then: Callable[[Board], News | None] = lambda _: None
) -> Answer:
    """Put every update on the board until the answer; `then` is called after each, and may return news."""
    with screen:
        hints = supervised(_hint(client, board, screen), "showing what is waited for")
        try:
            async with aclosing(client.updates(board.state.request_id)) as updates:
                async for update in updates:
                    show_update(board, screen, update)
                    screen.show(then(board), update.time - (board.state.started_at or update.time))
        finally:
            hints.cancel()
    assert board.state.answer is not None
    return board.state.answer


async def _hint(client: Client, board: Board, screen: Screen) -> None:
    """While nothing happens, show what is being waited for."""
    shown = ""
    began = time.monotonic()
    while True:
        before = board.state.last_sequence
        await asyncio.sleep(SILENCE_SECONDS)
        if board.state.last_sequence != before:
            continue
        why = await _waited_for(client, board)
        if why is not None and why != shown:
            screen.show(News(NewsKind.WAITING, why), time.monotonic() - began)
            shown = why


async def _waited_for(client: Client, board: Board) -> str | None:
    """What a stalled request waits for."""
    if not client.bus.connected.is_set():
        return "waiting: the broker is away; the request is kept and goes on when it is back"
    try:
        tags = await live_tags(client.bus)
    except BrokerAway as error:
        return f"waiting: {error}"
    standing = explain(board.state, replace(board.seen(client.bus.clock.now()), live_tags=tags))
    return str(standing) if standing.is_stalled else None
