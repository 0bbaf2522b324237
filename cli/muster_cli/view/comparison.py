"""How a comparison with Jaeger looks: what is there in one line, and each thing that is missing."""

from rich.console import Console
from rich.text import Text

from muster_cli.jaeger.compare import Check, Comparison
from muster_cli.view.plain import plain

GOOD, BAD, EXCUSED = ("✓", "green"), ("✗", "red"), ("–", "dim")
MAX_LISTED = 20  # things that are missing, orphans


def show_comparison(out: Console, comparison: Comparison) -> None:
    """Say plainly whether Jaeger has all of it, and what it has not."""
    out.print()
    if comparison.spans is None:
        _say(out, BAD, f"Jaeger at {comparison.url} has no trace {comparison.trace_id}")
        out.print(
            "    Nothing was exported (is OTEL_EXPORTER_OTLP_ENDPOINT set for every service?), it was not sampled, "
            "it is still on its way (wait a second), or it was forgotten."
        )
        return
    of = f" of {', '.join(comparison.services)}" if comparison.services else ""
    mark = GOOD if comparison.is_complete else BAD
    _say(out, mark, f"Jaeger at {comparison.url}: {comparison.spans:,} spans{of}")
    found = [check for check in comparison.checks if check.found >= check.expected]
    _say(out, GOOD if found else BAD, f"{len(found):,} of {len(comparison.checks):,} things in the log have their span")
    missing = comparison.missing
    for check in missing[:MAX_LISTED]:
        _say(out, BAD, f"no span: {_amount(check)}")
    _more(out, len(missing))
    for check in [check for check in comparison.checks if check.excuse and check.found < check.expected][:MAX_LISTED]:
        _say(out, EXCUSED, f"no span: {check.what}: {check.excuse}")
    _tree(out, comparison)
    if comparison.is_complete:
        _say(out, GOOD, "the trace is complete")
    else:
        _say(out, BAD, "the trace is not complete")


def _tree(out: Console, comparison: Comparison) -> None:
    roots = comparison.roots
    if len(roots) == 1:
        _say(out, GOOD, f"one root: {roots[0]}")
    else:
        _say(out, BAD, f"{len(roots)} roots instead of one{': ' if roots else ''}{', '.join(roots[:MAX_LISTED])}")
    for name in comparison.orphans[:MAX_LISTED]:
        _say(out, BAD, f"orphan: {name}: its parent was not exported, or belongs to the caller")
    _more(out, len(comparison.orphans))


def _amount(check: Check) -> str:
    return check.what if check.expected == 1 else f"{check.expected - check.found} of {check.expected} {check.what}"


def _more(out: Console, count: int) -> None:
    if count > MAX_LISTED:
        out.print(f"    … and {count - MAX_LISTED:,} more", style="dim")


def _say(out: Console, mark: tuple[str, str], text: str) -> None:
    out.print(Text.assemble((f"  {mark[0]} ", mark[1]), plain(text)))
