"""`muster conflicts`: what was assigned, started or finished twice, what was decided, and what the loser had spent."""

from argparse import Namespace
from datetime import datetime

from rich.console import Console

from muster_bus.buckets.conflicts import page_of_conflicts
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.view.board import name_of
from muster_cli.view.console import console, say_json
from muster_cli.view.plain import line
from muster_cli.view.requests import check_provisioned
from muster_client.queue import resolve_id
from muster_protocol.conflict import Conflict, ConflictKind, Side
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest

MAX_SHOWN = 100  # the newest
MAX_LINE = 1000  # characters


async def conflicts(given: Namespace, settings: Settings) -> int:
    kind = _kind(given.kind)
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        request_id = None if given.id is None else await resolve_id(client.bus, given.id, is_old=True)
        page = await page_of_conflicts(
            client.bus, MAX_SHOWN, None, lambda record: kind is None or kind in record.kinds, request_id
        )
    if given.json:
        shown = [record.model_dump(mode="json") for record in page.records]
        say_json({"conflicts": shown}, is_indented=True)
        return Exit.DONE
    out = console()
    for record in page.records:
        _show(out, record)
    if not page.records:
        out.print("no conflict is listed" if request_id is None else f"no conflict of {request_id} is listed")
    if page.after is not None:
        out.print(f"… only the newest {MAX_SHOWN} are shown", style="dim")
    return Exit.DONE


def _kind(text: str | None) -> ConflictKind | None:
    if text is None:
        return None
    if text not in set(ConflictKind):
        raise Invalid(f"no such kind{nearest(text, ConflictKind)}", "--kind")
    return ConflictKind(text)


def _show(out: Console, record: Conflict) -> None:
    found = datetime.fromtimestamp(record.found_at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    kinds = ", ".join(kind.replace("_", " ") for kind in record.kinds)
    of_attempt = f" attempt {record.attempt}" if record.attempt else ""
    out.print(f"{record.request_id}/{record.task_id}{of_attempt}  {kinds}", style="bold", soft_wrap=True)
    lines = [f"found     {found}", *(f"side      {_side(side, record)}" for side in record.sides)]
    if record.more_sides:
        lines.append("side      … and more")
    lines += [f"decided   {record.why}", *(f"cost      {line}" for line in _costs(record))]
    for text in lines:
        out.print(f"  {line(text, MAX_LINE)}", soft_wrap=True)


def _side(side: Side, record: Conflict) -> str:
    who = name_of(side.worker) if side.worker else f"nobody was seen to take it; by {side.sender or 'somebody'}"
    where = f"message {side.task_sequence or '?'}" + (f", delivery {side.delivery}" if side.worker else "")
    started = "" if side.started_at is None else f", started {_after(side.started_at, record)}"
    ended = "" if side.ended is None else f", {side.ended.value.replace('_', ' ')} {_after(side.ended_at, record)}"
    still = ", told to stop, not seen to have stopped" if side.id in record.stops and side.ended is None else ""
    trace = f", trace {side.trace_id}" if side.trace_id else ""
    return f"{who} ({where}){started}{ended}{still}{trace}"


def _after(at: float | None, record: Conflict) -> str:
    times = [time for side in record.sides for time in (side.started_at, side.ended_at) if time is not None]
    return f"at {(at or 0.0) - min(times, default=0.0):.2f} s"


def _costs(record: Conflict) -> list[str]:
    """What was spent by those whose work does not count."""
    lost = [side for side in record.sides if side.id in record.stops or _is_superseded(side, record)]
    return [f"{name_of(side.worker)} had spent {side.tokens:,} tokens, {side.usd:.4f} USD" for side in lost]


def _is_superseded(side: Side, record: Conflict) -> bool:
    return side.ended == "finished" and record.succeeded is not None and side.id != record.succeeded
