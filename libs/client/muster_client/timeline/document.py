"""A timeline as one JSON document, for machines; docs/clients.md describes it."""

from typing import Any

from muster_client.timeline.steps import Step, Timeline
from muster_protocol.status import Seen, explain_task

SCHEMA = 1  # grows when a field changes its meaning; new fields may come without that
DIGITS = 6  # microseconds: the clocks differ by more


def document_of(timeline: Timeline) -> dict[str, Any]:
    """Every step of the execution; times are seconds since 1970 by the broker's clock, offsets from `begin`."""
    state, totals = timeline.state, timeline.totals
    return {
        "schema": SCHEMA,
        "request_id": state.request_id,
        "team": state.team,
        "status": timeline.standing.status.value,
        "reason": timeline.standing.reason,
        "trace_id": timeline.trace_id,
        "begin": round(timeline.begin, DIGITS),
        "end": None if timeline.is_open else round(timeline.begin + totals.wall_seconds, DIGITS),
        "critical_path": list(timeline.critical_path),
        "totals": {
            name: round(value, DIGITS) if isinstance(value := getattr(totals, name), float) else value
            for name in totals.__slots__
        },
        "tasks": _tasks(timeline),
        "steps": [_step(step, timeline) for step in timeline.steps],
    }


def _tasks(timeline: Timeline) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task in timeline.state.tasks.values():
        standing = explain_task(timeline.state, task, Seen(timeline.end))
        rows.append(
            {
                "id": task.spec.id,
                "tag": task.spec.tag,
                "status": standing.status.value,
                "reason": standing.reason,
                "dependencies": list(task.spec.dependencies),
                "attempts": len(task.attempts),
                "seconds": task.seconds,
            }
        )
    return rows


def _step(step: Step, timeline: Timeline) -> dict[str, Any]:
    return {
        "what": step.what.value,
        "status": step.status.value,
        "task": step.task or None,
        "attempt": step.attempt or None,
        "delivery": step.delivery or None,
        "worker": step.worker or None,
        "role": step.role or None,
        "begin": round(step.begin, DIGITS),
        "end": None if step.end is None else round(step.end, DIGITS),
        "offset": round(step.begin - timeline.begin, DIGITS),
        "seconds": round(step.until(timeline.end) - step.begin, DIGITS),
        "critical": step.is_critical,
        "error_class": step.error_class or None,
        "error": step.error or None,
        "tokens": step.tokens,
        "usd": step.usd,
        "details": dict(step.details),
    }
