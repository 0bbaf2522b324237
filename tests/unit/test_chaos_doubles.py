"""The chaos checker's view of I6: what counts as executed twice at the same time, missed and invented."""

from muster_protocol.conflict import Conflict, ConflictKind
from tests.chaos.doubles import executed_twice, invented, missed
from tests.chaos.evidence import Evidence, Trace
from tests.chaos.ledger import Ledger, Outage

KEY = ("r", "t", 1)


def evidence(*steps: tuple[str, float, int], conflicts: tuple[Conflict, ...] = ()) -> Evidence:
    traces = [Trace(what, *KEY, time, process) for what, time, process in steps]
    return Evidence({}, [], traces, {}, {}, list(conflicts))


def conflict(kind: ConflictKind) -> Conflict:
    return Conflict(request_id="r", task_id="t", attempt=1, kinds=(kind,))


BESIDE = (("start", 1.0, 7), ("start", 2.0, 8), ("over", 9.0, 7), ("over", 9.5, 8))


def test_two_executions_beside_each_other_without_a_conflict_are_missed():
    assert [key for key, _ in missed(evidence(*BESIDE), Ledger())] == [KEY]
    assert list(missed(evidence(*BESIDE, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())) == []
    assert executed_twice(evidence(*BESIDE), Ledger()) == 1


def test_an_execution_that_was_paused_or_died_meanwhile_is_not_missed():
    paused = Ledger(outages=[Outage("w1", 1.5, 8.9, 7)])
    killed = Ledger(outages=[Outage("w1", 2.1, 4.0, 7, is_death=True)])

    assert list(missed(evidence(*BESIDE), paused)) == []
    assert list(missed(evidence(*BESIDE[:2], ("over", 9.5, 8)), killed)) == []


def test_what_nobody_could_see_is_not_missed():
    assert list(missed(evidence(*BESIDE), Ledger(outages=[Outage("c1", 0.0, 8.5)]))) == []


def test_a_conflict_of_an_attempt_that_was_executed_once_is_invented():
    once = BESIDE[0], BESIDE[2]

    assert [
        key for key, _ in invented(evidence(*once, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())
    ] == [KEY]
    assert list(invented(evidence(*BESIDE, conflicts=(conflict(ConflictKind.STARTED_TWICE),)), Ledger())) == []
    assert list(invented(evidence(*once, conflicts=(conflict(ConflictKind.SAME_WORK),)), Ledger())) == []
