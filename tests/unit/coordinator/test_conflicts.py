"""I6, the rules: whatever order, repetition and split of the evidence, one record, and one side that has to stop."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.conflicts.judge import contenders, judge, live_sides, merge
from muster_coordinator.conflicts.trails import Sighting
from muster_protocol.conflict import MAX_SIDES, ConflictKind
from tests.guards import guards
from tests.unit.coordinator.sightings import (
    BACK,
    DISPATCHED,
    FINISHED,
    KEY,
    NOW,
    REFUSED,
    STARTED,
    STOPPED,
    SUCCEEDED,
    judged,
    kinds,
    record_of,
    seen,
    side,
    stopped,
)

workers = st.sampled_from(["w1", "w2", "w3"])
times = st.integers(1, 30).map(float)
of_a_worker = st.sampled_from([STARTED, REFUSED, BACK, STOPPED, FINISHED, SUCCEEDED])
sightings = st.builds(
    Sighting,
    st.just(KEY),
    of_a_worker,
    times,
    workers,
    st.integers(1, 3),
    st.integers(7, 9),
    st.just("worker/x"),
    st.none() | st.just("4bf9"),
    st.integers(0, 3),
    st.just(0.5),
)
messages = st.builds(
    Sighting,
    st.just(KEY),
    st.just(DISPATCHED),
    times,
    st.just(""),
    st.just(0),
    st.integers(6, 10),
    st.just("supervisor/s1"),
    st.none(),
    st.just(0),
    st.just(0.0),
)
anything = st.lists(sightings | messages, max_size=14)


def _fit(*parts: list[Sighting]) -> bool:
    """No more sides than are kept: of more, a start is lost that came before the log spoke of its message."""
    return len({sighting[3:6] for part in parts for sighting in part}) <= MAX_SIDES


histories = anything.filter(_fit)


@given(histories, st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_order_repetition_and_split_of_the_evidence_gives_the_same_record(
    history: list[Sighting], chance: Random, count: int
):
    shuffled = [*history, *chance.sample(history, len(history) // 2)]
    chance.shuffle(shuffled)
    split: list[list[Sighting]] = [[] for _ in range(count)]
    for sighting in shuffled:
        chance.choice(split).append(sighting)

    merged = record_of(*split[0])
    for part in split[1:]:
        merged = merge(merged, record_of(*part)) if chance.random() < 0.5 else merge(record_of(*part), merged)

    assert merged == record_of(*history)
    assert judge(merged, NOW) == judged(*history)


@given(st.lists(st.lists(sightings | messages, max_size=4), min_size=3, max_size=3).filter(lambda parts: _fit(*parts)))
def test_merging_is_commutative_associative_and_idempotent(parts: Sequence[list[Sighting]]):
    a, b, c = (record_of(*part) for part in parts)

    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) == a


@given(anything, anything)
def test_of_too_many_sides_two_coordinators_come_to_the_same_record(one: list[Sighting], other: list[Sighting]):
    a, b = record_of(*one), record_of(*other)

    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), b) == merge(a, b)


@given(anything)
def test_the_only_live_side_is_never_stopped_and_of_several_all_but_one_are(history: list[Sighting]):
    record = record_of(*history)
    found = judge(record, NOW)
    live = {one.id for one in live_sides(record, None)}
    has_result = any(one.ended == "finished" for one in record.sides)

    if found is None:
        return
    if len(live) == 1 and not has_result:
        assert not live & set(found.stops)
    if len(live) > 1 and not has_result:
        assert len(live - set(found.stops)) == 1
        assert found.keep in live
    assert set(found.stops) <= {one.id for one in record.sides if one.started_at and not one.ended}


@given(histories, histories)
def test_what_was_decided_stands(history: list[Sighting], later: list[Sighting]):
    first = judged(*history)
    if first is None:
        return

    then = judge(merge(first, record_of(*later)), NOW)

    assert then is not None
    assert then.stops[: len(first.stops)] == first.stops
    assert set(first.kinds) <= set(then.kinds)


@given(st.lists(st.sampled_from(["w1", "w2", "w3", "w4"]), min_size=2, max_size=4, unique=True))
def test_a_chain_of_handovers_is_no_conflict(workers: list[str]):
    history = [seen(STARTED, number, worker, number) for number, worker in enumerate(workers, 1)]
    history += [seen(STARTED, number + 0.5, worker, number) for number, worker in enumerate(workers, 1)]
    history.append(seen(SUCCEEDED, 99, workers[-1], len(workers)))

    assert judged(*history) is None


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "return max(earlier.last_sign_at or 0.0, ended_at) > (later.started_at or 0.0)",
    rule="I6",
    replace="return True",
)
def test_a_silent_worker_of_the_earlier_delivery_is_a_handover():
    assert judged(seen(STARTED, 1, "w1"), seen(STARTED, 5, "w2", 2), seen(SUCCEEDED, 9, "w2", 2)) is None


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "key=lambda side: (side.started_at, side.delivery, side.worker)",
    rule="I6",
    replace="key=lambda side: (side.delivery, side.started_at, side.worker)",
)
def test_a_worker_that_hung_and_starts_the_earlier_delivery_when_the_later_one_has_died_is_a_handover():
    hung = seen(STARTED, 1, "w1"), seen(STARTED, 5, "w3", 3), seen(STARTED, 6, "w3", 3), seen(STARTED, 7, "w2", 2)

    assert judged(*hung, seen(STARTED, 9, "w2", 2)) is None
    assert kinds(*hung, seen(STARTED, 7.1, "w3", 3)) == ["started_twice"]


def test_two_live_workers_of_one_message_are_a_conflict_and_the_earlier_delivery_stops():
    history = (seen(STARTED, 1, "w1"), seen(STARTED, 5, "w2", 2), seen(STARTED, 5.1, "w1"), seen(STARTED, 5.2, "w2", 2))

    found = judged(*history)

    assert found is not None
    assert found.kinds == (ConflictKind.STARTED_TWICE,)
    assert (found.keep, found.stops) == (side("w2", 2), (side("w1"),))
    assert "later delivery" in found.why


def test_of_two_live_messages_the_later_start_stops():
    history = (
        seen(STARTED, 1, "w1", message=9),
        seen(STARTED, 5, "w2", message=8),
        seen(STARTED, 5.1, "w1", message=9),
        seen(STARTED, 5.2, "w2", message=8),
    )

    assert kinds(*history) == ["dispatched_twice", "started_twice"]
    assert stopped(*history) == [side("w2", message=8)]


def test_nobody_is_stopped_before_two_sides_have_answered_the_roll_call():
    started = seen(STARTED, 1, "w1"), seen(STARTED, 5, "w2", message=8)

    assert stopped(*started) == []
    assert stopped(*started, seen(STARTED, 5.1, "w2", message=8)) == []
    assert {one.worker for one in contenders(record_of(*started))} == {"w1", "w2"}


def test_signs_of_life_that_are_far_apart_do_not_show_that_both_live():
    history = (seen(STARTED, 1, "w1"), seen(STARTED, 5, "w2", 2), seen(STARTED, 5.1, "w2", 2), seen(STARTED, 9, "w1"))

    assert stopped(*history) == []
    assert stopped(*history, seen(STARTED, 9.1, "w2", 2)) == [side("w1")]


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "and (real is None or side.id in real)",
    rule="I6",
    replace="",
)
def test_nobody_is_stopped_for_the_sake_of_a_side_that_is_not_real():
    history = (
        seen(STARTED, 1, "ghost", message=1),
        seen(STARTED, 5, "w1"),
        seen(STARTED, 5.1, "ghost", message=1),
        seen(STARTED, 5.2, "w1"),
    )

    found = judge(record_of(*history), NOW, {side("w1"), side("w2")})

    assert found is not None
    assert found.stops == ()


def test_a_copy_that_runs_when_the_other_has_a_result_is_stopped():
    history = (seen(STARTED, 1, "w1"), seen(STARTED, 2, "w2", message=8), seen(SUCCEEDED, 3, "w1"))

    assert stopped(*history) == [side("w2", message=8)]


def test_a_start_after_the_success_and_one_after_the_answer_are_stopped():
    done = seen(STARTED, 1, "w1"), seen(SUCCEEDED, 2, "w1")
    again = seen(STARTED, 3, "w2", message=8)

    assert kinds(*done, again) == ["dispatched_twice", "started_twice", "started_after_success"]
    assert stopped(*done, again) == [side("w2", message=8)]
    assert "started_after_answer" in kinds(*done, again, answered_at=2.5)


def test_a_first_result_after_the_answer_is_late_and_no_conflict():
    assert judged(seen(STARTED, 1, "w1"), seen(FINISHED, 4, "w1"), answered_at=2) is None
    assert judged(seen(DISPATCHED, 1), seen(FINISHED, 4, "w1"), answered_at=2) is None


def test_a_start_long_after_the_answer_is_stopped_and_one_in_doubt_is_not():
    assert judged(seen(STARTED, 2.5, "w1"), answered_at=2) is None
    assert kinds(seen(STARTED, 4, "w1"), answered_at=2) == ["started_after_answer"]
    assert stopped(seen(STARTED, 4, "w1"), answered_at=2) == [side("w1")]


def test_two_messages_are_a_conflict_even_if_nobody_starts_the_second():
    assert kinds(seen(DISPATCHED, 1), seen(DISPATCHED, 2, message=8)) == ["dispatched_twice"]
    refused = judged(seen(STARTED, 1, "w1"), seen(REFUSED, 2, "w1", message=8))
    assert refused is not None
    assert refused.kinds == (ConflictKind.DISPATCHED_TWICE,)
    assert refused.stops == ()
    assert "was refused" in refused.why


def test_one_worker_with_two_deliveries_of_one_message_is_no_conflict_of_starts():
    again = seen(STARTED, 1, "w1"), seen(STARTED, 5, "w1", 2), seen(STARTED, 6, "w1"), seen(STARTED, 6, "w1", 2)

    assert judged(*again) is None
    assert contenders(record_of(*again)) == []
    assert judged(seen(SUCCEEDED, 1, "w1"), seen(STARTED, 5, "w1", 2)) is None


def test_a_hand_back_is_no_side_of_a_conflict_of_starts():
    history = (seen(STARTED, 1, "w1"), seen(BACK, 4, "w1"), seen(STARTED, 5, "w2", 2), seen(STARTED, 6, "w1"))

    assert judged(*history) is None


def test_finishing_twice_is_a_conflict_of_workers_deliveries_or_messages():
    assert kinds(seen(SUCCEEDED, 1, "w1"), seen(FINISHED, 2, "w2", 2)) == ["finished_twice"]
    assert kinds(seen(SUCCEEDED, 1, "w1"), seen(FINISHED, 2, "w1", 2)) == ["finished_twice"]
    assert judged(seen(SUCCEEDED, 1, "w1"), seen(FINISHED, 2, "w1")) is None
    assert judged(seen(SUCCEEDED, 1, "w1"), seen(STOPPED, 2, "w2", 2)) is None


def test_a_result_of_an_older_worker_belongs_to_its_start():
    assert judged(seen(STARTED, 1, "w1"), seen(SUCCEEDED, 2, "w1", message=0)) is None


def test_two_records_that_have_too_many_sides_together_say_so():
    most = MAX_SIDES - 2
    one, other = (record_of(*(seen(STARTED, n + 1.0, f"{name}{n}") for n in range(most))) for name in "vw")
    assert not one.more_sides

    merged = merge(one, other)

    assert len(merged.sides) == MAX_SIDES
    assert merged.more_sides
    assert not merge(one, one).more_sides
