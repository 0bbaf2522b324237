"""The rules of conflicts, in any order and under repetition."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.conflicts import (
    Conflict,
    ConflictDetector,
    Finish,
    HandBack,
    Sighting,
    Sign,
    Start,
)
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import ConflictFound

KEY = AttemptId("r1", "a", 1)
ROOT = Path(__file__).parents[3]


def seen(*sightings: Sighting) -> list[Conflict]:
    detector = ConflictDetector()
    return [conflict for sighting in sightings for conflict in detector.see(sighting)]


keys = st.builds(AttemptId, st.just("r1"), st.sampled_from(["a", "b"]), st.integers(1, 2))
names = st.sampled_from(["w1", "w2", "w3"])
times = st.floats(1, 100)
starts = st.builds(Start, keys, names, st.integers(1, 3), st.integers(1, 2), times)
finishes = st.builds(Finish, keys, names, st.integers(1, 3), times)
signs = st.builds(Sign, st.none() | keys, names, times)


def _first_of_each(sightings: Sequence[Sighting]) -> list[Sighting]:
    """A worker starts and finishes one delivery of one message once, at one time."""
    unique: dict[tuple[object, ...], Sighting] = {}
    for sighting in sightings:
        what = sighting if isinstance(sighting, Sign) else sighting[:-1]
        unique.setdefault((type(sighting), *what), sighting)
    return list(unique.values())


histories = st.lists(starts | finishes | signs, max_size=12).map(_first_of_each)


@given(histories.flatmap(lambda history: st.tuples(st.just(history), st.permutations(history))))
def test_any_order_gives_the_same_conflicts(histories: tuple[list[Sighting], list[Sighting]]):
    history, shuffled = histories

    assert set(seen(*shuffled)) == set(seen(*history))


@given(histories)
def test_repetition_adds_nothing_and_each_conflict_is_returned_once(history: list[Sighting]):
    found = seen(*history, *history)

    assert found == seen(*history)
    assert len(found) == len(set(found))


@given(histories)
def test_a_conflict_names_two_sides_that_were_seen(history: list[Sighting]):
    for conflict in seen(*history):
        workers = {s.worker for s in history if isinstance(s, Start | Finish) and s.key == conflict.key}
        assert conflict.first != conflict.second
        assert {side.split("@")[0].split("#")[0] for side in (conflict.first, conflict.second)} <= workers


@given(histories)
def test_the_loss_of_a_sighting_never_invents_a_conflict(history: list[Sighting]):
    everything = {
        (conflict.key, conflict.what, frozenset((conflict.first, conflict.second))) for conflict in seen(*history)
    }

    for lost in range(len(history)):
        rest = seen(*history[:lost], *history[lost + 1 :])
        assert {(c.key, c.what, frozenset((c.first, c.second))) for c in rest} <= everything


@given(st.lists(st.sampled_from(["w1", "w2", "w3", "w4"]), min_size=2, max_size=4, unique=True))
def test_a_chain_of_handovers_is_no_conflict(workers: list[str]):
    history: list[Sighting] = []
    for delivery, worker in enumerate(workers, 1):
        history += [Start(KEY, worker, delivery, 7, delivery), Sign(None, worker, delivery + 0.5)]
    history.append(Finish(KEY, workers[-1], len(workers), 99))

    assert seen(*history) == []


def test_two_messages_of_one_attempt_are_a_conflict_as_soon_as_both_are_started():
    assert seen(Start(KEY, "w1", 1, 7, 1.0), Start(KEY, "w2", 1, 8, 2.0)) == [
        Conflict(KEY, "started twice", "w1", "w2")
    ]


def test_one_worker_that_starts_two_messages_of_one_attempt_is_named_with_both():
    assert seen(Start(KEY, "w1", 1, 7, 1.0), Start(KEY, "w1", 1, 8, 2.0)) == [
        Conflict(KEY, "started twice", "w1@7", "w1@8")
    ]


def test_a_redelivery_to_the_same_worker_is_no_conflict():
    assert seen(Start(KEY, "w1", 1, 7, 1.0), Start(KEY, "w1", 2, 7, 2.0), Sign(None, "w1", 3.0)) == []


def test_an_event_of_the_earlier_worker_makes_a_redelivery_a_conflict():
    first, second = Start(KEY, "w1", 1, 7, 1.0), Start(KEY, "w2", 2, 7, 2.0)
    expected = [Conflict(KEY, "started twice", "w1", "w2")]

    assert seen(first, second, Sign(None, "w1", 3.0)) == expected
    assert seen(first, second, Sign(KEY, "w1", 3.0)) == expected
    assert seen(first, second, Finish(KEY, "w1", 1, 3.0)) == expected
    assert seen(first, second, Sign(None, "w1", 1.5)) == []
    assert seen(first, second, Sign(None, "w2", 3.0)) == []


def test_a_worker_that_handed_an_attempt_back_is_no_side_of_a_conflict():
    first, second = Start(KEY, "w1", 1, 7, 1.0), Start(KEY, "w2", 2, 7, 2.0)

    assert seen(first, HandBack(KEY, "w1", 1), second, Sign(None, "w1", 3.0)) == []


def test_finishing_twice_is_a_conflict_of_two_workers_or_of_two_deliveries():
    assert seen(Finish(KEY, "w1", 1, 1.0), Finish(KEY, "w2", 2, 2.0)) == [Conflict(KEY, "finished twice", "w1", "w2")]
    assert seen(Finish(KEY, "w1", 1, 1.0), Finish(KEY, "w1", 2, 2.0)) == [
        Conflict(KEY, "finished twice", "w1#1", "w1#2")
    ]
    assert seen(Finish(KEY, "w1", 1, 1.0), Finish(KEY, "w1", 1, 2.0)) == []


def test_the_detector_forgets_the_oldest_attempts_first():
    detector = ConflictDetector(max_attempts=2)
    for task_id in ("a", "b", "c"):
        detector.see(Start(AttemptId("r1", task_id, 1), "w1", 1, 7, 1.0))

    assert detector.see(Start(AttemptId("r1", "c", 1), "w2", 1, 8, 2.0)) != []
    assert detector.see(Start(AttemptId("r1", "a", 1), "w2", 1, 8, 2.0)) == []


def test_the_conflict_in_the_docs_is_one_that_the_detector_finds():
    golden = json.loads((ROOT / "tests" / "golden" / "conflict.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    example = json.loads(re.findall(r"^### conflict\n.*?```json\n(.*?)```", page, re.M | re.S)[0])
    key = AttemptId(example["request_id"], example["task_id"], example["attempt"])

    (conflict,) = seen(Finish(key, "w-1", 1, at=19.0), Finish(key, "w-2", 2, at=20.0))

    published = ConflictFound(
        **key._asdict(), what=conflict.what, first=conflict.first, second=conflict.second, at=example["at"]
    )
    assert ConflictFound.of(golden["body"]) == ConflictFound.of(example) == published
    assert golden["headers"]["Nats-Msg-Id"] == published.key
