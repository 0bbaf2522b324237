"""I6: what is remembered about attempts is bounded, and costs the same however much somebody publishes."""

import time
from itertools import pairwise

import pytest

from muster_coordinator.conflicts.evidence import MAX_SUSPECTS, Evidence
from muster_coordinator.conflicts.judge import conflict_of, judge, merge
from muster_coordinator.conflicts.sightings import result_seen
from muster_coordinator.conflicts.trails import What
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import ConflictKind
from tests.guards import guards
from tests.unit.coordinator.sightings import (
    DISPATCHED,
    FINISHED,
    KEY,
    NOW,
    STARTED,
    STOPPED,
    SUCCEEDED,
    record_of,
    seen,
)


def test_a_start_after_the_success_of_another_attempt_is_found_in_both_orders():
    success = seen(SUCCEEDED, 2, "w1")
    start = seen(STARTED, 3, "w2", message=8)._replace(key=KEY._replace(attempt=2))

    for history in ((success, start), (start, success)):
        evidence = Evidence()
        for sighting in history:
            evidence.see(sighting)
        assert start.key in evidence.suspects
        found = judge(conflict_of(start.key, evidence.case(start.key), None), NOW)
        assert found is not None
        assert found.kinds == (ConflictKind.STARTED_AFTER_SUCCESS,)


def test_the_oldest_attempts_are_forgotten_first():
    evidence = Evidence(max_attempts=2)
    for task_id in ("a", "b", "c"):
        evidence.see(seen(STARTED, 1, "w1")._replace(key=AttemptId("r1", task_id, 1)))

    assert [len(evidence.case(AttemptId("r1", task_id, 1)).trails) for task_id in ("a", "b", "c")] == [0, 1, 1]


def test_many_forged_starts_of_one_attempt_cost_no_more_each_than_a_few():
    def seconds(count: int) -> float:
        evidence, began = Evidence(), time.perf_counter()
        for number in range(count):
            evidence.see(seen(STARTED, number, f"ghost-{number}", message=count - number))
            judge(conflict_of(KEY, evidence.case(KEY), None), NOW)
        return time.perf_counter() - began

    assert seconds(4000) < 15  # all pairs of as many would take hours
    assert len(record_of(*(seen(STARTED, n, f"g{n}", message=n) for n in range(1, 99))).sides) == 8


@pytest.mark.parametrize("first", [1, 1000])
def test_made_up_starts_hide_neither_what_was_dispatched_nor_who_has_a_result(first: int):
    real = [seen(DISPATCHED, 1, message=500), seen(STARTED, 2, "w1", message=500), seen(FINISHED, 3, "w2", message=501)]
    forged = [seen(STARTED, 1, f"ghost-{number}", message=first + number) for number in range(20)]

    for history in ([*real, *forged], [*forged, *real], [*forged[:9], *real, *forged[9:]]):
        found = record_of(*history)
        assert {"w1", "w2"} <= {side.worker for side in found.sides}
        assert found.more_sides
        assert merge(record_of(*forged), found).sides == found.sides


@guards(
    "services/coordinator/muster_coordinator/conflicts/evidence.py",
    "self._workers[worker] = None",
    replace='self._workers[""] = None; return',
    rule="I6",
    case="finished",
)
@pytest.mark.parametrize("what", [STARTED, STOPPED, FINISHED], ids=["started", "stopped", "finished"])
def test_what_unknown_workers_say_of_any_message_hides_no_registered_worker(what: What):
    real = [seen(DISPATCHED, 1, message=500), seen(STARTED, 2, "w1", message=500), seen(STARTED, 3, "w2", message=501)]
    forged = [seen(what, 1, f"ghost-{n}", message=500 if n % 2 else n) for n in range(40)]

    for history in ([*real, *forged], [*forged, *real], [*forged[:9], *real, *forged[9:]]):
        evidence = Evidence()
        evidence.see_worker("w1")
        evidence.see_worker("w2")
        for sighting in history:
            evidence.see(sighting)
        found = conflict_of(KEY, evidence.case(KEY), None)
        assert {"w1", "w2"} <= {side.worker for side in found.sides}
        assert merge(record_of(*forged), found).sides == merge(found, record_of(*forged)).sides
        assert {"w1", "w2"} <= {side.worker for side in merge(record_of(*forged), found).sides}


def test_a_made_up_attempt_number_costs_nothing():
    began = time.perf_counter()
    evidence = Evidence()
    for number in range(1000):
        evidence.see(seen(STARTED, 1, "w1")._replace(key=KEY._replace(attempt=10**17 + number)))

    assert time.perf_counter() - began < 2
    assert all(one.attempt < two.attempt for one, two in pairwise(evidence.suspects))


def test_beyond_the_bound_the_oldest_suspect_is_given_up_and_counted():
    evidence = Evidence()
    for number in range(MAX_SUSPECTS + 2):
        evidence.suspect(AttemptId("r1", f"t{number}", 1))

    assert (len(evidence.suspects), evidence.given_up) == (MAX_SUSPECTS, 2)
    assert next(iter(evidence.suspects)).task_id == "t2"
    assert AttemptId("r1", f"t{MAX_SUSPECTS + 1}", 1) in evidence.suspects


def test_a_result_counts_as_seen_only_if_it_names_an_attempt_that_can_be():
    headers = {"task": "a", "attempt": "1", "status": "done", "delivery": "2", "task-sequence": "7"}

    found = result_seen("r1", "worker/w1", 3.0, headers, is_counted=True)

    assert found is not None
    assert found[:6] == (KEY, What.SUCCEEDED, 3.0, "w1", 2, 7)
    assert result_seen("r1", "client/x", 3.0, headers, is_counted=True) is None
    for wrong in (
        {"task": "a" * 999},
        {"task": "a.b"},
        {"task": ""},
        {"attempt": "0"},
        {"attempt": "-1"},
        {"attempt": ""},
    ):
        assert result_seen("r1", "worker/w1", 3.0, {**headers, **wrong}, is_counted=True) is None
