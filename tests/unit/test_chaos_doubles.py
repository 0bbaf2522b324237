"""The chaos checker's view of I6: what counts as executed twice at the same time, missed, invented, rightly stopped."""

import pytest

from muster_protocol.conflict import Conflict, ConflictKind, Side
from tests.chaos.doubles import executed_twice, invented, missed
from tests.chaos.evidence import Evidence, Log, Stop, Trace, judged
from tests.chaos.ledger import Ledger, Outage, TaskCopy
from tests.chaos.stops import not_stopped, wrong_stops
from tests.unit.protocol.log_builder import REQUEST, planned, reserved, result, task

KEY = ("r", "t", 1)
NAMES = {7: "w1", 8: "w2"}
BESIDE = (("start", 1.0, 7), ("start", 2.0, 8), ("over", 9.0, 7), ("over", 9.5, 8))
KILLED = Outage("w1", 3.0, 4.0, 7, is_death=True)
HANDOVER = (("start", 1.0, 7), ("start", 4.5, 8), ("over", 9.5, 8))  # with KILLED


def evidence(
    *steps: tuple[str, float, int],
    conflicts: tuple[Conflict, ...] = (),
    logs: dict[str, Log] | None = None,
    stops: tuple[Stop, ...] = (),
    key: tuple[str, str, int] = KEY,
) -> Evidence:
    traces = [Trace(what, *key, time, process) for what, time, process in steps]
    return Evidence(logs or {}, [], traces, {}, {}, list(conflicts), list(stops))


def conflict(kind: ConflictKind, *sides: Side, key: tuple[str, str, int] = KEY) -> Conflict:
    return Conflict(request_id=key[0], task_id=key[1], attempt=key[2], kinds=(kind,), sides=sides)


def side(worker: str, message: int) -> Side:
    return Side(worker=worker, delivery=1, task_sequence=message, started_at=1.0)


def stop(worker: str, at: float) -> Stop:
    return Stop(KEY, worker, 1, 5, at)


def ledger(*outages: Outage) -> Ledger:
    return Ledger(outages=list(outages), names=dict(NAMES))


def test_two_executions_beside_each_other_without_a_conflict_are_missed():
    assert [key for key, _ in missed(evidence(*BESIDE), Ledger())] == [KEY]
    assert list(missed(evidence(*BESIDE, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())) == []
    assert executed_twice(evidence(*BESIDE), Ledger()) == (1, 1)


@pytest.mark.parametrize(("overlap", "is_missed"), [(0.9, True), (0.25, True), (0.15, False)])
def test_a_quarter_of_a_second_beside_each_other_suffices(overlap: float, is_missed: bool):
    steps = (("start", 1.0, 7), ("start", 2.0, 8), ("over", 2.0 + overlap, 7), ("over", 5.0, 8))

    assert bool(list(missed(evidence(*steps), ledger()))) is is_missed


def test_an_execution_that_was_paused_or_died_meanwhile_is_not_missed():
    paused = Ledger(outages=[Outage("w1", 1.5, 8.9, 7)])
    killed = Ledger(outages=[Outage("w1", 2.1, 4.0, 7, is_death=True)])

    assert list(missed(evidence(*BESIDE), paused)) == []
    assert list(missed(evidence(*BESIDE[:2], ("over", 9.5, 8)), killed)) == []


def test_who_died_beside_another_is_missed_only_if_there_was_time_to_ask_who_lives():
    steps = (*BESIDE[:2], ("over", 9.5, 8))

    assert list(missed(evidence(*steps), ledger(Outage("w1", 3.0, 4.0, 7, is_death=True)))) == []
    assert [key for key, _ in missed(evidence(*steps), ledger(Outage("w1", 4.0, 5.0, 7, is_death=True)))] == [KEY]


def test_what_nobody_could_see_is_not_missed_but_what_one_of_two_coordinators_saw_is():
    away = Outage("c1", 0.0, 9.5)
    alone, two = ({**NAMES, 3: "c1"}, {**NAMES, 3: "c1-2", 4: "c2"})

    assert list(missed(evidence(*BESIDE), Ledger(outages=[away], names=alone))) == []
    assert [key for key, _ in missed(evidence(*BESIDE), Ledger(outages=[away], names=two))] == [KEY]
    both = [away, Outage("c2", 0.0, 8.5)]
    assert list(missed(evidence(*BESIDE), Ledger(outages=both, names=two))) == []
    assert list(missed(evidence(*BESIDE), Ledger(lags=[(0.0, 9.0)], names=two))) == []


def test_a_second_message_that_was_stored_by_hand_and_is_no_conflict_is_missed():
    copied = Ledger(task_copies=[TaskCopy(KEY, "late", 9, 3.0)])

    assert [key for key, _ in missed(evidence(), copied)] == [KEY]
    assert list(missed(evidence(conflicts=(conflict(ConflictKind.DISPATCHED_TWICE),)), copied)) == []


def test_a_conflict_of_an_attempt_that_was_executed_once_is_invented():
    once = BESIDE[0], BESIDE[2]

    assert [
        key for key, _ in invented(evidence(*once, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())
    ] == [KEY]
    assert list(invented(evidence(*BESIDE, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())) == []
    assert list(invented(evidence(*once, conflicts=(conflict(ConflictKind.SAME_WORK),)), Ledger())) == []


def test_started_twice_over_a_handover_after_a_death_is_invented_unless_there_were_two_messages():
    one = conflict(ConflictKind.STARTED_TWICE, side("w1", 5), side("w2", 5))
    two = conflict(ConflictKind.STARTED_TWICE, side("w1", 5), side("w2", 6))

    assert [key for key, _ in invented(evidence(*HANDOVER, conflicts=(one,)), ledger(KILLED))] == [KEY]
    assert list(invented(evidence(*HANDOVER, conflicts=(two,)), ledger(KILLED))) == []
    assert list(invented(evidence(*BESIDE, conflicts=(one,)), ledger())) == []


def logged(at: float) -> dict[str, Log]:
    """The result of w1 at this moment, and nothing else."""
    log = planned(task("t"))
    log.own(reserved(("t", 1)))
    log.work(result("t"))
    *before, last = log.entries
    return {REQUEST: judged(REQUEST, [*before, last._replace(time=at)])}


def test_a_result_that_was_stored_after_the_other_began_shows_started_twice():
    key = (REQUEST, "t", 1)
    record = conflict(ConflictKind.STARTED_TWICE, side("w1", 5), side("w2", 5), key=key)
    steps = (("start", 1.0, 7), ("over", 3.0, 7), ("start", 4.5, 8), ("over", 6.0, 8))

    def found(at: float) -> list[str]:
        return [text for _, text in invented(evidence(*steps, conflicts=(record,), logs=logged(at), key=key), ledger())]

    assert len(found(3.1)) == 1
    assert found(5.0) == []


@pytest.mark.parametrize(("began", "count"), [(4.0, 1), (6.0, 0)])
def test_started_after_the_success_is_invented_if_the_start_came_first(began: float, count: int):
    key = (REQUEST, "t", 1)
    record = conflict(ConflictKind.STARTED_AFTER_SUCCESS, side("w1", 5), side("w2", 6), key=key)
    steps = (("start", 1.0, 7), ("over", 4.9, 7), ("start", began, 8), ("over", 9.0, 8))

    assert len(list(invented(evidence(*steps, conflicts=(record,), logs=logged(5.0), key=key), ledger()))) == count


def test_started_after_the_answer_is_invented_without_an_answer():
    record = conflict(ConflictKind.STARTED_AFTER_ANSWER, side("w1", 5))

    assert [key for key, _ in invented(evidence(*BESIDE, conflicts=(record,)), ledger())] == [KEY]


def test_of_two_live_sides_one_may_be_told_to_stop_and_not_both():
    assert list(wrong_stops(evidence(*BESIDE, stops=(stop("w2", 3.0), stop("w2", 4.0))), ledger())) == []
    assert [key for key, _ in wrong_stops(evidence(*BESIDE, stops=(stop("w2", 3.0), stop("w1", 3.1))), ledger())] == [
        KEY
    ]


def test_the_only_live_side_must_not_be_told_to_stop():
    late, soon = stop("w2", 7.0), stop("w2", 5.0)

    assert [key for key, _ in wrong_stops(evidence(*HANDOVER, stops=(late,)), ledger(KILLED))] == [KEY]
    assert list(wrong_stops(evidence(*HANDOVER, stops=(soon,)), ledger(KILLED))) == []  # it showed life a moment ago


def test_two_sides_that_run_on_beside_each_other_must_not_go_unstopped():
    assert [key for key, _ in not_stopped(evidence(*BESIDE), ledger())] == [KEY]
    assert list(not_stopped(evidence(*BESIDE, stops=(stop("w1", 3.0),)), ledger())) == []
    assert list(not_stopped(evidence(*BESIDE), ledger(Outage("broker", 1.0, 7.0)))) == []
