"""How many calls may start: exact in every window, whoever asks when, and whatever is refused, given back or lost."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.workers.rate_limits import (
    EMPTY,
    LEASE_SECONDS,
    MAX_HOLD_SECONDS,
    Asker,
    Bound,
    Change,
    Grant,
    Limits,
    RateRecord,
    Wait,
    changed,
    corrected,
    expected,
    granted,
    refused,
    renewed,
    scaled,
)
from tests.guards import guards

RULES = "libs/protocol/muster_protocol/workers/rate_limits.py"
AT = 1_700_000_000.0
NOBODY = Asker("one")
MINUTE = Limits(requests=60)


@dataclass
class Played:
    """A record that several processes ask, and when they started what they were granted."""

    limits: Limits
    record: RateRecord = EMPTY
    starts: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])  # with the tokens
    waited: list[Wait] = field(default_factory=list[Wait])

    def ask(self, now: float, costs: list[int], late: float) -> None:
        """Start what is granted as late as `late` of the time allows."""
        found = granted(self.record, self.limits, NOBODY, costs, now)
        if isinstance(found, Wait):
            self.waited.append(found)
            return
        self.record = found.record
        start = now + late * (found.start_by - now)
        self.starts += [(start, self.limits.cost(cost)) for cost in costs[: found.calls]]

    def most_in_a_window(self) -> tuple[int, int]:
        """Of all windows that begin with a start: those hold the most."""
        windows = [
            [tokens for at, tokens in self.starts if begin <= at < begin + self.limits.window]
            for begin, _ in self.starts
        ]
        return max(map(len, windows), default=0), max(map(sum, windows), default=0)


steps = st.lists(
    st.tuples(
        st.floats(0, 20),  # seconds since the last
        st.lists(st.integers(0, 500), min_size=1, max_size=20),
        st.floats(0, 1),
    ),
    max_size=40,
)


@guards(RULES, "limits.requests - starts)", rule="I9", replace="limits.requests)")
@guards(RULES, "self.ends + limits.leeway + limits.window", rule="I9", replace="self.ends + limits.window")
@guards(RULES, "tokens + spent + cost > limits.tokens", rule="I9", replace="spent + cost > limits.tokens")
@given(steps, st.integers(1, 30), st.integers(1, 2_000) | st.none(), st.sampled_from([1.0, 3.0, 60.0]))
def test_no_window_has_more_than_the_limit(
    asked: list[tuple[float, list[int], float]], requests: int, tokens: int | None, window: float
) -> None:
    played, now = Played(Limits(requests, tokens, window=window)), AT
    for pause, costs, late in asked:
        now += pause * window / 60
        before = len(played.waited)
        played.ask(now, costs, late)
        if len(played.waited) > before:  # and again at the first moment at which something may start
            now = played.waited[-1].until or now
            played.ask(now, costs, 0.0)

    most, most_tokens = played.most_in_a_window()
    assert most <= requests
    assert tokens is None or most_tokens <= tokens


@given(steps, st.integers(1, 10))
def test_who_waits_as_long_as_it_is_told_gets_something(asked: list[tuple[float, list[int], float]], most: int) -> None:
    played, now = Played(Limits(most)), AT
    for pause, costs, late in asked:
        now += pause
        before = len(played.waited)
        played.ask(now, costs, late)
        if len(played.waited) > before:
            until = played.waited[-1].until
            assert until is not None
            assert until > now
            assert isinstance(granted(played.record, played.limits, NOBODY, costs, until), Grant)


@given(st.integers(1, 200), st.integers(1, 60))
def test_the_last_of_many_is_told_when_its_turn_comes(calls: int, requests: int) -> None:
    limits = Limits(requests)
    waits = expected(EMPTY, limits, [0] * calls, AT)

    played, now, asked = Played(limits), AT, calls
    while asked:
        before = len(played.starts)
        played.ask(now, [0] * asked, 0.0)
        asked -= len(played.starts) - before
        if asked:
            now = expected(played.record, limits, [0], now)[0].until or 0.0
    begun = [at for at, _ in played.starts]
    told = [wait.until or 0.0 for wait in waits]
    assert told == sorted(told)
    assert all(at - 2 <= until <= at + 2 for at, until in zip(begun, told, strict=True))  # cells are a second


def test_a_saturated_minute_loses_little() -> None:
    played, now = Played(MINUTE), AT
    for _ in range(10 * 60 * 4):  # ten minutes, four looks in a second
        played.ask(now, [0] * 5, 0.0)
        now += 0.25

    assert len(played.starts) >= 570


def test_a_call_larger_than_the_limit_goes_alone() -> None:
    limits = Limits(tokens=100)
    first = granted(EMPTY, limits, NOBODY, [5_000, 1], AT)
    assert isinstance(first, Grant)
    assert first.calls == 1
    second = granted(first.record, limits, NOBODY, [1], AT + 1)
    assert isinstance(second, Wait)
    assert second.bound is Bound.TOKENS


def test_what_a_call_did_use_counts_in_place_of_what_was_estimated() -> None:
    limits = Limits(tokens=1_000)
    first = granted(EMPTY, limits, NOBODY, [900], AT)
    assert isinstance(first, Grant)
    record = changed(first.record, [Change(first.cell_end, 0, -600)])

    assert isinstance(granted(record, limits, NOBODY, [700], AT + 1), Grant)
    assert isinstance(granted(record, limits, NOBODY, [701], AT + 1), Wait)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5), st.floats(0, 5)), max_size=40))
def test_never_more_are_under_way_than_may(asked: list[tuple[str, int, float]]) -> None:
    limits, record, now = Limits(concurrent=4), EMPTY, AT
    running = dict.fromkeys("abc", 0)
    for name, wanted, pause in asked:
        now += pause / 10  # nobody's lease ends: each renews it
        for one, calls in running.items():
            record = renewed(record, one, calls, now)
        found = granted(record, limits, Asker(name, running[name]), [0] * wanted, now)
        if isinstance(found, Grant):
            record = found.record
            running[name] += found.calls
        elif wanted:
            running[name] = max(0, running[name] - 1)
        assert sum(running.values()) <= 4


def test_the_places_of_a_process_that_died_are_free_when_its_lease_ends() -> None:
    limits = Limits(concurrent=2)
    held = granted(EMPTY, limits, Asker("dead"), [0, 0], AT)
    assert isinstance(held, Grant)

    wait = granted(held.record, limits, Asker("alive"), [0], AT + 1)
    assert wait == Wait(AT + LEASE_SECONDS, Bound.CONCURRENT)
    assert isinstance(granted(held.record, limits, Asker("alive"), [0], AT + LEASE_SECONDS), Grant)


@given(st.floats(0, 1e9) | st.none(), st.lists(st.floats(0, 100), max_size=10))
def test_a_refusal_holds_everybody_and_never_for_ever(seconds: float | None, pauses: list[float]) -> None:
    record, now = EMPTY, AT
    for pause in [0.0, *pauses]:
        now += pause
        record = refused(record, now, seconds)
        assert record.held_until <= now + MAX_HOLD_SECONDS
        if record.held_until > now:
            wait = granted(record, Limits(), NOBODY, [0], now)
            assert wait == Wait(record.held_until, Bound.REFUSED)
        assert seconds is None or record.held_until >= min(now + seconds, now + MAX_HOLD_SECONDS)


def test_calls_that_are_refused_together_are_one_refusal() -> None:
    record = EMPTY
    for _ in range(50):
        record = refused(record, AT, None)

    assert record.refusals == 1
    assert record.held_until == AT + 1
    assert refused(record, AT + 1, None).held_until == AT + 3


def test_what_others_started_with_the_key_is_counted_and_nothing_is_refilled() -> None:
    first = granted(EMPTY, MINUTE, NOBODY, [0], AT)
    assert isinstance(first, Grant)
    fewer = changed(first.record, corrected(first.record, MINUTE, {"requests": 9}, AT))

    assert isinstance(found := granted(fewer, MINUTE, NOBODY, [0] * 60, AT + 1), Grant)
    assert found.calls == 9
    assert corrected(first.record, MINUTE, {"requests": 1_000}, AT) == []
    assert corrected(first.record, MINUTE, {"tokens": 0}, AT) == []


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(-50, 50), st.integers(-500, 500)), max_size=30))
def test_no_count_falls_below_nothing(changes: list[tuple[float, int, int]]) -> None:
    record = changed(EMPTY, [Change(*change) for change in changes])

    assert all(cell.starts >= 0 and cell.tokens >= 0 for cell in record.cells)
    assert [cell.ends for cell in record.cells] == sorted({cell.ends for cell in record.cells})


def test_a_wide_limit_needs_no_more_room_than_a_narrow_one() -> None:
    played, now = Played(Limits(100_000)), AT
    for _ in range(600):
        now += 0.1
        played.ask(now, [0] * 50, 0.0)

    assert len(played.record.cells) <= 64
    assert len(played.record.model_dump_json(exclude_defaults=True)) < 4_000


def test_the_same_rate_in_another_window() -> None:
    assert scaled(Limits(60, 6_000, 5), 10.0) == Limits(10, 1_000, 5, 10.0)
