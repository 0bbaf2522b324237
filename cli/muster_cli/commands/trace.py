"""`muster trace`: what happened in a request, step by step, from its log; and what Jaeger has of it."""

from argparse import Namespace
from typing import Any

from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.jaeger.compare import Comparison, compare
from muster_cli.jaeger.fetch import JaegerAway, fetch_spans
from muster_cli.view.comparison import show_comparison
from muster_cli.view.console import console, say, say_json
from muster_cli.view.requests import check_provisioned
from muster_cli.view.waterfall import show_waterfall
from muster_client import Client
from muster_client.queue import resolve_id
from muster_client.timeline import Timeline, document_of
from muster_protocol.errors import Invalid


async def trace(given: Namespace, settings: Settings) -> int:
    jaeger_url = _jaeger_url(given, settings)
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        timeline = await known_timeline(client, given.id)
    try:
        comparison = await _compared(timeline, jaeger_url) if given.jaeger is not None else None
    except JaegerAway as error:
        _show(timeline, None, given, jaeger_url)
        say(f"muster: {error}", is_error=True)
        return Exit.NO_BROKER
    _show(timeline, comparison, given, jaeger_url)
    return Exit.DONE if comparison is None or comparison.is_complete else Exit.FAILED


async def known_timeline(client: Client, name: str) -> Timeline:
    """The timeline of a request; an id that nobody knows is refused as `muster status` refuses it."""
    return await client.timeline(await resolve_id(client.bus, name))


def _jaeger_url(given: Namespace, settings: Settings) -> str | None:
    url = given.jaeger or settings.jaeger_url
    if given.jaeger is not None and url is None:
        raise Invalid("where is Jaeger? Name it, as in `--jaeger http://localhost:16686`, or set MUSTER_JAEGER_URL")
    if given.jaeger is not None and url is not None and not url.startswith(("http://", "https://")):
        raise Invalid(f"{url!r} is not the address of a Jaeger, such as http://localhost:16686", "--jaeger")
    return url


async def _compared(timeline: Timeline, url: str | None) -> Comparison:
    assert url is not None, "the arguments were checked"
    return compare(timeline, url, await fetch_spans(url, timeline.trace_id))


def _show(timeline: Timeline, comparison: Comparison | None, given: Namespace, jaeger_url: str | None) -> None:
    if given.json:
        document: dict[str, Any] = document_of(timeline)
        if comparison is not None:
            document["jaeger"] = comparison.as_json()
        say_json(document, is_indented=True)
        return
    out = console()
    show_waterfall(out, timeline, is_whole=given.all, jaeger_url=jaeger_url)
    if comparison is not None:
        show_comparison(out, comparison)
