"""Compares the log of a request with the spans that Jaeger has: what is missing, and whether it is one tree. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muster_cli.jaeger import names
from muster_cli.jaeger.fetch import Span
from muster_client.timeline import Step, StepStatus, Timeline, What


@dataclass(frozen=True, slots=True)
class Check:
    """Something that the log says happened, and whether a span tells of it. `excuse` says why none may be there."""

    what: str
    found: int
    expected: int
    excuse: str = ""

    @property
    def is_missing(self) -> bool:
        return self.found < self.expected and not self.excuse


@dataclass(frozen=True, slots=True)
class Comparison:
    """What Jaeger has of a request; `spans` is None when it does not know the trace."""

    url: str
    trace_id: str
    spans: int | None
    services: tuple[str, ...]
    checks: tuple[Check, ...]
    roots: tuple[str, ...]
    orphans: tuple[str, ...]  # their parent is not there

    @property
    def missing(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.is_missing)

    @property
    def is_complete(self) -> bool:
        return self.spans is not None and not self.missing and not self.orphans and len(self.roots) == 1

    def as_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "trace_id": self.trace_id,
            "is_known": self.spans is not None,
            "is_complete": self.is_complete,
            "spans": self.spans or 0,
            "services": list(self.services),
            "roots": list(self.roots),
            "orphans": list(self.orphans),
            "missing": [check.what for check in self.missing],
            "checks": [
                {"what": check.what, "found": check.found, "expected": check.expected, "excuse": check.excuse or None}
                for check in self.checks
            ],
        }


def compare(timeline: Timeline, url: str, found: list[Span] | None) -> Comparison:
    """Check every step of the log that has a span of its own, and the shape of the tree."""
    spans = found or []
    ids = {span.id for span in spans}
    return Comparison(
        url=url,
        trace_id=timeline.trace_id,
        spans=None if found is None else len(spans),
        services=tuple(sorted({span.service for span in spans if span.service})),
        checks=tuple(_checks(timeline, spans)),
        roots=tuple(span.name for span in spans if not span.parent),
        orphans=tuple(span.name for span in spans if span.parent and span.parent not in ids),
    )


def _checks(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    request_id = timeline.state.request_id
    ours = [span for span in spans if span.attributes.get(names.REQUEST_ID, request_id) == request_id]
    kinds = Counter(span.name.partition(" ")[0] for span in ours)
    by_what = {step.what: step for step in timeline.steps if not step.task}
    if What.PLAN in by_what or What.ANSWER in by_what:
        yield Check("request", kinds[names.REQUEST], 1)
    if timeline.state.plan_entry is not None:
        yield Check("plan", kinds[names.PLAN], 1)
    yield from _attempts(timeline, ours)
    yield from _tools(timeline, ours)
    if timeline.state.answer is not None:
        yield Check("answer", kinds[names.ANSWER], 1)


def _attempts(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    """One span for each run that a worker brought to an end."""
    exact: Counter[tuple[str, str, str]] = Counter()
    for span in spans:
        if span.name.partition(" ")[0] == names.ATTEMPT:
            attributes = span.attributes
            task, number = attributes.get(names.TASK_ID, ""), attributes.get(names.ATTEMPT_NUMBER, "")
            exact[task, number, attributes.get(names.DELIVERY, "")] += 1
    for step in timeline.steps:
        if step.what is not What.ATTEMPT or not step.worker:
            continue
        key = (step.task, str(step.attempt))
        count = exact[*key, str(step.delivery)] or exact[*key, ""]
        yield Check(_called(step), min(1, count), 1, _excuse(step))


def _tools(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    """As many spans of a tool as calls were recorded."""
    expected = Counter(str(step.details.get("tool", "")) for step in timeline.steps if step.what is What.TOOL)
    names_of_spans = (span.name.partition(" ") for span in spans)
    found = Counter(name for kind, _, name in names_of_spans if kind == names.TOOL)
    for tool, count in sorted(expected.items()):
        yield Check(f"{'call' if count == 1 else 'calls'} of {tool}", min(count, found[tool]), count)


def _called(step: Step) -> str:
    delivery = f", delivery {step.delivery}" if step.delivery > 1 else ""
    role = f" as {step.role}" if step.role else ""
    return f"attempt {step.attempt} of {step.task} (worker-{step.worker}{role}{delivery})"


def _excuse(step: Step) -> str:
    """Why a run may have no span: it is exported at its end, by a process that lives and ran the role."""
    if step.status is StepStatus.LOST:
        return "its worker died before it could export it"
    if step.status is StepStatus.OPEN:
        return "it goes on"
    if step.status is StepStatus.CANCELLED and "output" not in step.details:
        return "it was stopped, or its worker died"
    if step.details.get("reported_by") == "supervisor":
        return "its worker gave no result in time"
    if step.error_class == "poison" or (step.status is StepStatus.HANDED_BACK and step.begin == step.end):
        return "it was not run"
    return ""
