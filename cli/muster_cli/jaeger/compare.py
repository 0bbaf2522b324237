"""Compares the log of a request with the spans that Jaeger has: what is missing, and whether it is one tree. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muster_bus.tracing import names
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
    request_id, state = timeline.state.request_id, timeline.state
    ours = [span for span in spans if span.attributes.get(names.REQUEST_ID, request_id) == request_id]
    by_what = {step.what: step for step in timeline.steps if not step.task}
    if What.PLAN in by_what or What.ANSWER in by_what:
        yield Check("request", _count(ours, names.INVOKE_WORKFLOW), 1)
    if state.plan_entry is not None:
        yield Check("plan", _count(ours, names.PLAN), 1)
    yield from _published(timeline, ours)
    yield from _attempts(timeline, ours)
    yield from _tools(timeline, ours)
    usage = state.answer.usage if state.answer is not None else state.usage
    yield from _several("model call", sum(map(_is_recorded_call, ours)), usage.model_calls)
    yield from _of_attempts(timeline, ours)
    takeovers = sum(step.what is What.TAKE_OVER for step in timeline.steps)
    yield from _several("takeover", _count(ours, names.TAKE_OVER), takeovers)
    if state.answer is not None:
        yield from _several("wait for a person", _count(ours, names.WAIT_FOR_PERSON), len(state.questions))
        if state.answer.model:  # it was composed; what is refused unread is not
            yield Check("compose", _count(ours, names.COMPOSE), 1)
        yield Check("answer", _count(ours, names.ANSWER), 1)


def _is(span: Span, kind: str) -> bool:
    return span.name == kind or span.name.startswith(f"{kind} ")


def _count(spans: list[Span], kind: str) -> int:
    return sum(_is(span, kind) for span in spans)


def _is_recorded_call(span: Span) -> bool:
    """A call that the log counts: a model of ours costs nothing, nor does a call that failed."""
    attributes = span.attributes
    is_ours = attributes.get(names.PROVIDER) == names.OUR_PROVIDER
    return _is(span, names.CHAT) and not is_ours and names.ERROR_TYPE not in attributes


def _several(what: str, found: int, expected: int) -> Iterable[Check]:
    if expected:
        yield Check(what if expected == 1 else f"{what}s", min(found, expected), expected)


def _published(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    """The batches together have every task whose message was stored."""
    stored = sum(step.what is What.DISPATCH and step.status is StepStatus.DONE for step in timeline.steps)
    counts = [span.attributes.get(names.BATCH_COUNT, "") for span in spans if _is(span, names.PUBLISH_TASKS)]
    yield from _several("published task", sum(int(count) for count in counts if count.isdecimal()), stored)


def _of_attempts(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    """One span for each revision and for each conflict, which name their attempt."""
    for what, kinds in ((What.REVISION, (names.REFINE, names.TRY_AGAIN)), (What.CONFLICT, (names.CONFLICT,))):
        found = {
            (span.attributes.get(names.TASK_ID, ""), span.attributes.get(names.ATTEMPT, ""))
            for span in spans
            if any(_is(span, kind) for kind in kinds)
        }
        for step in timeline.steps:
            if step.what is what and step.status is not StepStatus.OPEN and step.details:
                has_one = (step.task, str(step.attempt)) in found
                yield Check(f"{what.value} of attempt {step.attempt} of {step.task}", int(has_one), 1)


def _attempts(timeline: Timeline, spans: list[Span]) -> Iterable[Check]:
    """One span for each run that a worker brought to an end."""
    exact: Counter[tuple[str, str, str]] = Counter()
    for span in spans:
        if _is(span, names.INVOKE_AGENT):
            attributes = span.attributes
            task, number = attributes.get(names.TASK_ID, ""), attributes.get(names.ATTEMPT, "")
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
    found = Counter(name for kind, _, name in names_of_spans if kind == names.EXECUTE_TOOL)
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
