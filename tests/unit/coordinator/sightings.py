"""Evidence about one attempt, and the record that it makes."""

from muster_coordinator.conflicts.evidence import Evidence
from muster_coordinator.conflicts.judge import conflict_of, judge
from muster_coordinator.conflicts.trails import Sighting, What
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, SideId

KEY = AttemptId("r1", "a", 1)
NOW = 1000.0
DISPATCHED, STARTED, REFUSED, BACK, STOPPED, FINISHED, SUCCEEDED = What


def seen(what: What, at: float, worker: str = "", delivery: int = 1, message: int = 7) -> Sighting:
    return Sighting(KEY, what, at, worker, delivery if worker else 0, message, f"worker/{worker}" if worker else "s/s1")


def side(worker: str, delivery: int = 1, message: int = 7) -> SideId:
    return SideId(worker=worker, delivery=delivery, task_sequence=message)


def record_of(*history: Sighting, answered_at: float | None = None) -> Conflict:
    evidence = Evidence()
    for sighting in history:
        evidence.see(sighting)
    if answered_at is not None:
        evidence.see_answer(KEY.request_id, answered_at)
    return conflict_of(KEY, evidence.case(KEY), evidence.answered_at(KEY.request_id))


def judged(*history: Sighting, answered_at: float | None = None) -> Conflict | None:
    return judge(record_of(*history, answered_at=answered_at), NOW)


def kinds(*history: Sighting, answered_at: float | None = None) -> list[str]:
    found = judged(*history, answered_at=answered_at)
    return [] if found is None else [kind.value for kind in found.kinds]


def stopped(*history: Sighting, answered_at: float | None = None) -> list[SideId]:
    found = judged(*history, answered_at=answered_at)
    return [] if found is None else list(found.stops)
