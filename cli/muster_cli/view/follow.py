"""Follows a request to its answer and shows it: progress on standard error, the answer on standard output."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from rich.console import Console

from muster_bus.background import supervised
from muster_bus.buckets.workers import read_signs
from muster_bus.process.command import Exit
from muster_cli.exits import exit_of
from muster_cli.view.board import Board
from muster_cli.view.console import console, say_json
from muster_cli.view.news import News, NewsKind
from muster_cli.view.render import ending_of, remarks_on, sentence, show_answer
from muster_cli.view.screen import Screen, screen_for, show_update
from muster_client import Client, NoAnswer
from muster_client.view import seen_with
from muster_protocol.errors import BrokerAway
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, AnswerStatus
from muster_protocol.status import explain
from muster_protocol.workers.signs import Signs

if TYPE_CHECKING:
    from muster_cli.people.approve import Approval

SILENCE_SECONDS = 5.0  # without news for this long, show what is being waited for
LOOK_SECONDS = 2.0  # between two looks while nothing happens: a worker may die meanwhile


async def follow(
    client: Client, request_id: str, *, is_json: bool, jaeger_url: str | None, approval: "Approval | None" = None
) -> int:
    """Show a request until it is answered, after its plan was approved here; returns the exit code of its answer."""
    errors = console(is_error=True)
    board = Board(RequestState(request_id))
    errors.print(f"request {request_id}", style="dim")
    try:
        if approval is not None:
            await client.in_time(request_id, approval.ask())
        answer = await client.in_time(
            request_id, watched(client, board, screen_for(errors, board, client.bus.clock.now))
        )
    except NoAnswer as late:
        if is_json:
            say_json({"request_id": request_id, "no_answer": late.missing})
        _show_late(errors, request_id, late.missing)
        return Exit.NO_ANSWER
    except (asyncio.CancelledError, BrokerAway, EOFError) as end:
        errors.print(
            f"the request goes on: `muster status {request_id}` shows it, `muster wait {request_id}` follows it, "
            f"`muster cancel {request_id}` ends it"
        )
        if isinstance(end, EOFError):
            return Exit.INTERRUPTED
        raise
    if is_json:
        say_json(answer.model_dump(mode="json", by_alias=True), is_indented=True)
    else:
        show_answer(console(), answer)
    for remark in remarks_on(answer):
        errors.print(remark, soft_wrap=True)
    errors.print(ending_of(answer, jaeger_url), soft_wrap=True)
    if answer.status is not AnswerStatus.DONE:
        errors.print(sentence(explain(board.state, board.seen(client.bus.clock.now()))), soft_wrap=True)
    return exit_of(answer.status)


def _show_late(out: Console, request_id: str, missing: str) -> None:
    out.print(f"no answer in time: {missing}", style="red", soft_wrap=True)
    again = f"`muster wait {request_id}` waits on, `muster cancel {request_id}` ends it"
    way_out = f"the request goes on as soon as `muster up` or a service is there: {again}"
    out.print(way_out, soft_wrap=True)


async def watched(
    client: Client, board: Board, screen: Screen, then: Callable[[Board], News | None] = lambda _: None
) -> Answer:
    """Put every update on the board until the answer; `then` is called after each, and may return news."""
    with screen:
        hints = supervised(_hint(client, board, screen), "showing what is waited for")
        try:
            async with aclosing(client.updates(board.state.request_id)) as updates:
                async for update in updates:
                    show_update(board, screen, update, client.bus.clock.now())
                    screen.show(then(board), update.time - (board.state.started_at or update.time))
        finally:
            hints.cancel()
    assert board.state.answer is not None
    return board.state.answer


async def _hint(client: Client, board: Board, screen: Screen) -> None:
    """While nothing happens, show what is being waited for."""
    shown = ""
    signs: Signs | None = None
    began = last_news_at = time.monotonic()
    before = board.state.last_sequence
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if board.state.last_sequence != before:
            before, last_news_at = board.state.last_sequence, time.monotonic()
        if time.monotonic() - last_news_at < SILENCE_SECONDS:
            continue
        why, signs = await _waited_for(client, board, signs)
        if why is not None and _without_numbers(why) != shown:  # a countdown is shown once
            taken_at = board.state.started_at  # 0 before that
            seconds = client.bus.clock.now() - taken_at if taken_at else time.monotonic() - began
            screen.show(News(NewsKind.WAITING, why), seconds)
            shown = _without_numbers(why)


async def _waited_for(client: Client, board: Board, before: Signs | None) -> tuple[str | None, Signs | None]:
    """What a stalled request waits for, and what the registry said when it was looked at, `before` and now."""
    if not client.bus.connected.is_set():
        return "waiting: the broker is away; the request is kept and goes on when it is back", before
    try:
        signs = (await read_signs(client.bus)).after(before)
        seen = await seen_with(client.bus, board.state, board.seen(client.bus.clock.now()), signs)
    except BrokerAway as error:
        return f"waiting: {error}", before
    standing = explain(board.state, seen)
    return str(standing) if standing.is_stalled else None, signs


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "N", text)
