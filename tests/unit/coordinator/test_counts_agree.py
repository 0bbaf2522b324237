"""The overview and the fold count the same, whatever is in the log and however often and late it is seen."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster_bus.clock import BrokerClock
from muster_bus.read_stream import Raw
from muster_bus.receive import HeaderGate
from muster_bus.tail import Live
from muster_coordinator.observe import Observer
from muster_coordinator.overview import Summary
from muster_coordinator.task_counts import TaskCounts, counts_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.messages import LOG_KINDS, Answer, Dispatched, PlanRecorded, Reserved, Result, Taken, Usage
from muster_protocol.plan import is_acyclic
from muster_protocol.sender import Origin, Sender
from muster_protocol.status_words import RequestStatus, open_status
from muster_protocol.subjects import results
from tests.unit.protocol.arbitrary import logs
from tests.unit.protocol.log_builder import REQUEST

Counted = tuple[TaskCounts, int, float, RequestStatus]  # tasks, tokens and usd of results, status

lives = st.tuples(st.just("live"), st.integers(0, 40))  # the broker repeats this entry, once more or late
reads = st.tuples(st.just("read"), st.integers(0, 10))  # so many further entries are read
views = st.lists(lives | reads, max_size=40)


@st.composite
def observed_logs(draw: st.DrawFn, *, is_expected: bool) -> list[Entry]:
    """Any log in which a result's headers name its cost and an owner reserves what its fold allows, perhaps twice."""
    entries: list[Entry] = []
    state = RequestState(REQUEST)
    has_begun = is_expected
    earlier: list[Reserved] = []
    for entry in draw(logs()):
        body = entry.body
        if isinstance(body, Dispatched):  # which counts nothing
            body = draw(st.sampled_from([body, *earlier]))
        if isinstance(body, Result):
            tokens = body.usage.tokens
            usage = Usage(output_tokens=tokens, usd=tokens / 4, model_calls=1 if tokens else 0)
            body = body.model_copy(update={"usage": usage, "output": None})
        kept_entry = entry._replace(body=body)
        has_begun = has_begun or _begins_a_log(kept_entry)
        if has_begun and _is_usable(kept_entry):
            apply(state, kept_entry)
            if isinstance(body, Reserved) and _is_current(state, kept_entry):
                earlier.append(_accepted(state, body))
                kept_entry = kept_entry._replace(body=earlier[-1])
        if isinstance(body, PlanRecorded) and not is_acyclic(body.plan):
            continue  # no owner writes such a plan
        entries.append(kept_entry)
    return entries


def _is_current(state: RequestState, entry: Entry) -> bool:
    return h.is_owner(entry.sender) and entry.term == state.term and state.answer is None


def _accepted(state: RequestState, body: Reserved) -> Reserved:
    """Without what the fold refuses; what was reserved before may come again, and a success may have come meanwhile."""
    attempts = {task_id: len(task.attempts) + bool(task.success) for task_id, task in state.tasks.items()}
    kept = (found for found in body.attempts if 1 <= found.attempt <= attempts.get(found.task_id, 0))
    return Reserved(attempts=tuple(kept))


def _is_usable(entry: Entry) -> bool:
    """Whether the log of a supervisor would fold it, or report it and pass it over."""
    try:
        h.require_sender({h.SENDER: entry.sender})
        LOG_KINDS[entry.body.kind].read(entry.body.body())
    except Invalid:
        return False
    return True


def _begins_a_log(entry: Entry) -> bool:
    return _is_usable(entry) and h.is_owner(entry.sender) and isinstance(entry.body, Taken | Answer)


def _folded(entries: Sequence[Entry], *, is_expected: bool) -> dict[int, Counted | None]:
    """By sequence: what the fold counts up to there. None until an owner writes, unless the request is known."""
    state = RequestState(REQUEST)
    has_begun = is_expected
    counted: dict[int, Counted | None] = {0: _counted(state) if is_expected else None}
    for entry in entries:
        has_begun = has_begun or _begins_a_log(entry)
        if has_begun and _is_usable(entry):
            apply(state, entry)
        counted[entry.sequence] = _counted(state) if has_begun else None
    return counted


def _counted(state: RequestState) -> Counted:
    planning = state.plan_entry.usage if state.plan_entry else Usage()
    tokens, usd = state.usage.tokens - planning.tokens, state.usage.usd - planning.usd
    return counts_of(state), tokens, usd, _status(state)


def _status(state: RequestState) -> RequestStatus:
    """Without what only the fold knows: that no task is left to wait for."""
    if state.answer is not None:
        return RequestStatus(state.answer.status.value)
    return open_status(
        has_owner=state.owner is not None,
        has_plan=state.plan_entry is not None,
        is_ending=state.cancelled is not None,
    )


def _shown(observer: Observer) -> Counted | None:
    found: Summary | None = observer.overview.get(REQUEST)
    return found and (found.counts(), found.tokens, found.usd, found.status)


def _stored(entry: Entry) -> Raw:
    origin = Origin(REQUEST, Sender("worker", "w1"), term=entry.term)
    headers = {**h.headers_of(entry.body, origin), h.SENDER: entry.sender}
    return Raw(entry.sequence, entry.time, results(REQUEST), headers, entry.body.body())


def _read_on(observer: Observer, log: Sequence[Raw], most: int) -> None:
    last = observer.overview.last_of(REQUEST)
    for raw in [raw for raw in log if raw.sequence > last][:most]:
        observer.apply_entry(raw)


@pytest.mark.parametrize("is_expected", [True, False])
@given(data=st.data(), views=views)
@settings(max_examples=50)  # of whole logs, each of which is counted after every entry
def test_the_overview_counts_what_the_fold_counts(data: st.DataObject, views: list[tuple[str, int]], is_expected: bool):
    entries = data.draw(observed_logs(is_expected=is_expected))
    log = [_stored(entry) for entry in entries]
    previous = [0, *(raw.sequence for raw in log)]
    folded = _folded(entries, is_expected=is_expected)
    observer = Observer(BrokerClock(), HeaderGate(lambda _reason, _raw: None))
    if is_expected:
        observer.overview.expect(REQUEST)

    for kind, number in [*views, ("read", len(log))]:
        if kind == "read":
            _read_on(observer, log, number)
        elif number < len(log):
            observer.on_live_entry(Live(log[number], previous[number]))
        assert _shown(observer) == folded[observer.overview.last_of(REQUEST)]

    assert observer.overview.last_of(REQUEST) == previous[-1]


@given(observed_logs(is_expected=False), st.data())
@settings(max_examples=50)
def test_a_log_that_is_read_twice_counts_once(entries: list[Entry], data: st.DataObject):
    log = [_stored(entry) for entry in entries]
    again = data.draw(st.integers(0, len(log)))
    observer = Observer(BrokerClock(), HeaderGate(lambda _reason, _raw: None))

    for raw in [*log[:again], *log]:
        observer.apply_entry(raw)

    assert _shown(observer) == _folded(entries, is_expected=False)[log[-1].sequence]
