"""The timeline of any log with any events: it never fails, stays in its bounds, and adds up to what the fold says."""

import json
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from muster_client.timeline import Step, StepStatus, StoredEvent, Timeline, What, document_of, timeline
from muster_protocol.fold import Entry, fold
from muster_protocol.messages import ConflictFound, Event, HandedBack, Progress, Started, ToolUsed
from tests.unit.protocol.arbitrary import attempts, logs, task_ids
from tests.unit.protocol.log_builder import REQUEST

NOW = 5_000.0
CLOSE = 1e-6
moderately = settings(max_examples=60)

workers = st.sampled_from(("w1", "w2", "w3"))
deliveries = st.integers(0, 3)
times = st.floats(900.0, 1_400.0)
tools = st.builds(
    ToolUsed,
    request_id=st.just(REQUEST),
    task_id=task_ids,
    attempt=attempts,
    tool=st.sampled_from(("search", "sum")),
    seconds=st.floats(-5, 1e12),
    error=st.none() | st.just("no"),
)
bodies: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Started,
        request_id=st.just(REQUEST),
        task_id=task_ids,
        attempt=attempts,
        worker=workers,
        role=st.just("work"),
        delivery=deliveries,
        task_sequence=st.integers(0, 9),
    ),
    st.builds(
        HandedBack,
        request_id=st.just(REQUEST),
        task_id=task_ids,
        attempt=attempts,
        worker=workers,
        delivery=deliveries,
    ),
    st.builds(Progress, request_id=st.just(REQUEST), task_id=task_ids, attempt=attempts, text=st.text(max_size=5)),
    tools,
    st.builds(
        ConflictFound,
        request_id=st.just(REQUEST),
        task_id=task_ids,
        attempt=attempts,
        what=st.just("started twice"),
        first=workers,
        second=workers,
        at=times,
    ),
)
senders = st.sampled_from(("worker/w1/work", "worker/w2/work", "worker/w3", "client/c1", "x", ""))
events = st.lists(st.builds(StoredEvent, times, senders, bodies), max_size=25)


def made(entries: list[Entry], said: list[StoredEvent], asked_at: float | None = None) -> Timeline:
    return timeline(REQUEST, entries, said, now=NOW, asked_at=asked_at)


def attempt_of(step: Step) -> tuple[str, int]:
    return step.task, step.attempt


@given(logs(), events, st.none() | st.floats(0, 2_000), st.integers(0, 40))
@moderately
def test_every_step_of_any_prefix_lies_within_the_request(
    entries: list[Entry], said: list[StoredEvent], asked_at: float | None, length: int
):
    found = made(entries[:length], said, asked_at)

    assert found.steps[0].what is What.REQUEST
    for step in found.steps:
        assert found.begin <= step.begin <= found.end
        assert step.end is None or step.begin <= step.end <= found.end
        assert (step.end is None) == (step.status is StepStatus.OPEN)
    if not found.is_open:
        assert all(step.end is not None for step in found.steps)


@given(logs(), events)
@moderately
def test_what_counts_is_what_the_fold_says(entries: list[Entry], said: list[StoredEvent]):
    state = fold(REQUEST, entries)

    found = made(entries, said)

    ran = [step for step in found.steps if step.what is What.ATTEMPT]
    counted = [
        attempt_of(step)
        for step in ran
        if step.status in (StepStatus.DONE, StepStatus.FAILED, StepStatus.CANCELLED) and "output" in step.details
    ]
    results = {(task_id, a.number): a.result for task_id, task in state.tasks.items() for a in task.attempts}
    assert sorted(counted) == sorted(key for key, result in results.items() if result is not None)
    dispatched = [attempt_of(step) for step in found.steps if step.what is What.DISPATCH]
    assert sorted(dispatched) == sorted(results)
    assert found.totals.attempts == len(results)
    beyond = next((step.tokens for step in found.steps if step.what is What.ANSWER), 0)
    assert found.totals.tokens - beyond == state.usage.tokens
    assert abs(found.totals.work_seconds - sum(task.seconds for task in state.tasks.values())) < CLOSE
    assert found.totals.uncounted >= state.uncounted


@given(logs(), events, st.data())
@moderately
def test_the_order_and_the_repetition_of_events_change_nothing(
    entries: list[Entry], said: list[StoredEvent], data: st.DataObject
):
    shuffled = data.draw(st.permutations([*said, *said[:5]]))

    assert made(entries, shuffled).steps == made(entries, said).steps


@given(logs(), events)
@moderately
def test_entries_that_are_read_twice_change_nothing(entries: list[Entry], said: list[StoredEvent]):
    again = [*entries, *entries[-4:]]

    assert made(again, said).steps == made(entries, said).steps


@given(logs(), events)
@moderately
def test_the_waits_and_runs_of_an_attempt_follow_each_other(entries: list[Entry], said: list[StoredEvent]):
    found = made(entries, said)

    by_attempt: dict[tuple[str, int], dict[What, Step]] = {}
    for step in found.steps:
        if step.task and step.what in (What.DISPATCH, What.QUEUED):
            by_attempt.setdefault(attempt_of(step), {})[step.what] = step
    for steps in by_attempt.values():
        if What.QUEUED in steps:
            assert steps[What.DISPATCH].end == steps[What.QUEUED].begin
    for step in found.steps:
        if step.what is What.ATTEMPT and attempt_of(step) in by_attempt:
            dispatched_at = by_attempt[attempt_of(step)][What.DISPATCH].begin
            # A result that somebody stored before the dispatch belongs to no run of the attempt.
            assert step.begin >= dispatched_at or (step.end is not None and step.end <= dispatched_at)


@given(logs(), events)
@moderately
def test_the_critical_path_runs_along_dependencies(entries: list[Entry], said: list[StoredEvent]):
    found = made(entries, said)

    path = [name for name in found.critical_path if name in found.state.tasks]
    for before, after in pairwise(path):
        assert before in found.state.tasks[after].spec.dependencies
    assert {step.task for step in found.steps if step.is_critical and step.task} <= set(path)


@given(logs(), events)
@moderately
def test_the_document_is_json_and_has_every_step(entries: list[Entry], said: list[StoredEvent]):
    found = made(entries, said)

    document = json.loads(json.dumps(document_of(found), allow_nan=False))

    assert len(document["steps"]) == len(found.steps)
    assert len(document["tasks"]) == len(found.state.tasks)
