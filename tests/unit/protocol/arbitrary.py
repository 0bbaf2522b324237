"""Arbitrary plans and log entries: valid ones, invalid ones, and everything in between."""

from hypothesis import strategies as st

from muster_protocol.fold import Entry, RequestState, TaskPhase, apply
from muster_protocol.messages import (
    AnswerStatus,
    Budget,
    Decision,
    Extended,
    Failure,
    GrowthLimits,
    LogBody,
    PlanRecorded,
    Reservation,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Usage,
    refining,
)
from muster_protocol.plan import AtLeast, Gather, Plan, TaskSpec
from tests.unit.protocol.log_builder import (
    REQUEST,
    answer,
    dispatched,
    failure,
    plan_entry,
    plan_of,
    reserved,
    result,
    revision,
    taken,
)

TASK_IDS = ("a", "b", "c", "d", "e", "f")
SENDERS = ("supervisor/s1", "supervisor/s2", "worker/w1/work", "client/c1", "supervisor", "anonymous")

SPAWN = (TaskSpec(id="more", description="x", tag="work"),)

task_ids = st.sampled_from((*TASK_IDS, "unknown"))
attempts = st.integers(0, 4)
numbers = st.tuples(task_ids, attempts)
times = st.floats(0, 5_000)
gathers: st.SearchStrategy[Gather | None] = st.none() | st.sampled_from(
    ("all", "done", AtLeast(at_least=0), AtLeast(at_least=2))
)


@st.composite
def plans(draw: st.DrawFn, most: int = len(TASK_IDS), *, may_grow: bool = True) -> Plan:
    """An acyclic plan: a task depends on tasks before it, in an order that the plan does not keep."""
    count = draw(st.integers(1, most))
    ids = [*TASK_IDS, *(f"t{n}" for n in range(most))][:count]
    specs: list[TaskSpec] = []
    for place, task_id in enumerate(ids):
        needs = draw(st.lists(st.sampled_from(ids[:place]), max_size=3)) if place else []
        spec = TaskSpec(
            id=task_id,
            description="x",
            tag="work",
            dependencies=tuple(needs),
            max_attempts=draw(st.none() | st.integers(1, 3)),
            gather=draw(gathers),
            item_of=draw(st.sampled_from((None, "items"))),
        )
        if may_grow and needs and draw(st.integers(0, 3)) == 0:
            spec = spec.model_copy(update={"over": needs[0], "description": "x {item}"})
        specs.append(spec)
    return plan_of(*draw(st.permutations(specs)))


@st.composite
def broken_plans(draw: st.DrawFn) -> Plan:
    """A plan with an id twice, a dependency on nothing, or a cycle."""
    plan = draw(plans())
    first = plan.tasks[0]
    broken = draw(
        st.sampled_from(
            (
                (*plan.tasks, first),
                (first.model_copy(update={"dependencies": ("nowhere",)}), *plan.tasks[1:]),
                (first.model_copy(update={"dependencies": (first.id,)}), *plan.tasks[1:]),
            )
        )
    )
    return plan.model_copy(update={"tasks": broken})


@st.composite
def _reservations(draw: st.DrawFn) -> Reserved:
    found = draw(st.lists(numbers, max_size=4))
    timeout, tokens = draw(st.floats(-1, 100)), draw(st.none() | st.integers(0, 100))
    if draw(st.integers(0, 3)) == 0:
        purpose = draw(st.sampled_from(("plan", "compose", "review:1")) | numbers.map(lambda found: refining(*found)))
        return Reserved(attempts=(), purpose=purpose, tokens=tokens, usd=draw(st.none() | st.floats(0, 2)))
    return Reserved(
        attempts=tuple(Reservation(task_id=t, attempt=n, timeout_seconds=timeout, tokens=tokens) for t, n in found)
    )


@st.composite
def _results(draw: st.DrawFn) -> Result:
    task_id, attempt = draw(numbers)
    tokens, worker = draw(st.integers(0, 50)), draw(st.sampled_from(("w1", "w2")))
    status = draw(st.sampled_from(ResultStatus))
    body = result(task_id, attempt, worker=worker, tokens=tokens)
    if status is ResultStatus.FAILED:
        body = failure(task_id, attempt, is_final=draw(st.booleans()))
    return body.model_copy(update={"status": status, "tasks": draw(st.sampled_from(((), (), SPAWN)))})


causes = st.one_of(
    task_ids.map("over:{}".format),
    task_ids.map("spawned:{}".format),
    task_ids.map("failure:{}".format),
    st.integers(1, 3).map("review:{}".format),
)


@st.composite
def _growths(draw: st.DrawFn, causes: st.SearchStrategy[str] = causes) -> Extended:
    """By any cause, with tasks that may be there already, belong to another, wait for anybody, or take one's place."""
    cause = draw(causes)
    kind, _, of = cause.partition(":")
    add = tuple(
        TaskSpec(
            id=draw(st.sampled_from((*(f"{kind[0]}{of}-{number}",) * 6, "a"))),
            description="x {item}",
            tag="work",
            item_of=draw(st.sampled_from((of, of, of, "b") if kind == "over" else (None, None, None, "items", "b"))),
            dependencies=tuple(draw(st.lists(task_ids | st.just(f"{kind[0]}{of}-0"), max_size=2))),
            over=draw(st.sampled_from((None, None, "a"))),
        )
        for number in range(draw(st.integers(0, 3)))
    )
    drop = tuple(draw(st.lists(task_ids, max_size=4))) if kind == "failure" or draw(st.integers(0, 9)) == 0 else ()
    refused = Failure(error_class="bad_output", message="no list") if draw(st.integers(0, 4)) == 0 else None
    return Extended(cause=cause, add=add, drop=drop, refused=refused)


@st.composite
def _fitting(draw: st.DrawFn, state: RequestState) -> Extended:
    """By a cause that is pending, with tasks that mostly may be added, in place of what its failure skipped."""
    cause = draw(st.sampled_from(sorted(state.growing)))
    task = state.tasks.get(state.growing[cause])
    kind, _, of = cause.partition(":")
    needs = st.lists(st.sampled_from(sorted(state.tasks)), max_size=2) if kind == "review" else st.just([])
    add = tuple(
        TaskSpec(
            id=f"{kind[0]}{of}-{number}",
            description="x",
            tag="work",
            item_of=of if kind == "over" else None,
            dependencies=tuple(draw(needs)),
        )
        for number in range(draw(st.integers(0, 2)))
    )
    drop: dict[str, None] = {}
    if task is not None and kind == "failure" and draw(st.booleans()):
        waiting = list(task.dependents)
        for name in waiting:
            drop[name] = None
            waiting += [each for each in state.tasks[name].dependents if each not in drop]
    return Extended(cause=cause, add=add, drop=tuple(drop))


def _limits(tokens: int) -> GrowthLimits:
    """Small enough to be reached, mostly with something left to grow by."""
    return GrowthLimits(tasks=12 - tokens % 5, rounds=tokens % 4, depth=tokens % 3, replacements=tokens % 3)


def _plan_recorded(plan: Plan, in_flight: int, tokens: int) -> PlanRecorded:
    return plan_entry(plan, in_flight=in_flight).model_copy(
        update={"usage": Usage(input_tokens=tokens), "budget": Budget(), "growth": _limits(tokens)}
    )


bodies: st.SearchStrategy[LogBody] = st.one_of(
    st.builds(taken, st.sampled_from(("s1", "s2")), st.integers(1, 5), deadline=times, handed_back=st.booleans()),
    st.builds(_plan_recorded, plans() | broken_plans(), st.integers(1, 4), st.integers(0, 10)),
    _reservations(),
    st.lists(numbers, max_size=3).map(lambda found: dispatched(*found)),
    st.builds(
        Revision,
        task_id=task_ids,
        attempt=attempts,
        description=st.just("x"),
        not_before=times,
        reason=st.just("no"),
        gives_up=st.booleans(),
    ),
    st.builds(Decision, decision=st.just("cancel"), control_sequence=st.integers(0, 9), by=st.just("client/c1")),
    _results(),
    _growths(),
    st.sampled_from(AnswerStatus).map(lambda status: answer().model_copy(update={"status": status})),
)


@st.composite
def _sensible(draw: st.DrawFn, state: RequestState) -> LogBody:
    """What an owner or a worker might well write now."""
    if state.owner is None:
        return taken("s1")
    if state.plan_entry is None:
        return _plan_recorded(draw(plans()), 100, draw(st.integers(0, 11)))
    running = [(t, len(task.attempts)) for t, task in state.tasks.items() if task.phase is TaskPhase.RESERVED]
    ended = [(t, len(task.attempts)) for t, task in state.tasks.items() if task.result is not None]
    given_up = [
        (t, attempt.number)
        for t, task in state.tasks.items()
        for attempt in task.attempts
        if attempt.result is not None and task.success is None
    ]
    moves: list[LogBody] = [
        *(result(t, n, worker="w3", tokens=5) for t, n in given_up),
        *(result(t, n, worker="w2", tokens=5) for t, n in ended),
        *(reserved((t, len(state.tasks[t].attempts) + 1)) for t in state.ready),
        *(result(t, n) for t, n in [*running, *running]),
        *(result(t, n).model_copy(update={"tasks": SPAWN}) for t, n in running),
        *(failure(t, n) for t, n in running),
        *(failure(t, n, is_final=True) for t, n in running),
        *(dispatched((t, n)) for t, n in running),
        *(revision(t, len(state.tasks[t].attempts) + 1, not_before=1_050.0) for t in state.awaiting_retry),
        *(reserved((t, len(task.attempts) + 1)) for t, task in state.tasks.items() if task.phase is TaskPhase.DELAYED),
    ]
    if state.growing:
        moves += [draw(_growths(st.sampled_from(sorted(state.growing)))), *(draw(_fitting(state)) for _ in range(4))]
    return draw(st.sampled_from(moves or [answer()]))


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Entries that often make sense and sometimes mean nothing; the terms are mostly that of the owner."""
    state = RequestState(REQUEST)
    entries = [
        Entry(1, 1_000.0, SENDERS[0], 0, taken("s1")),
        Entry(2, 1_000.1, SENDERS[0], 1, _plan_recorded(draw(plans()), 100, draw(st.integers(0, 11)))),
    ][: draw(st.sampled_from((0, 1, 2, 2, 2)))]
    for entry in entries:
        apply(state, entry)
    terms = [0]
    sequence, time = 2, 1_000.1
    length = draw(st.sampled_from((4, 12, 30)))
    for chance in draw(st.lists(st.integers(0, 9), min_size=length, max_size=length)):
        sequence += 1 + chance % 3
        time += 5.0 * chance
        body = draw(_sensible(state)) if chance < 7 else draw(bodies)
        term, sender = state.term, "worker/w1/work" if body.kind == "result" else "supervisor/s1"
        if chance % 4 == 3:
            term, sender = draw(st.sampled_from(terms)), draw(st.sampled_from(SENDERS))
        entries.append(Entry(sequence, time, sender, term, body))
        apply(state, entries[-1])
        terms.append(state.term)
    return entries
