"""What a timeline says of a conflict: what its record says now."""

import json

from muster_client.timeline import What, document_of, timeline
from muster_protocol.conflict import Conflict, ConflictKind, Side
from muster_protocol.messages import ConflictFound
from tests.unit.client.test_timeline import NOW, at, placed, steps
from tests.unit.protocol.log_builder import REQUEST, START, planned, reserved, task


def test_a_conflict_has_what_was_decided_after_it_was_found():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    found_twice = ConflictFound(
        request_id=REQUEST, task_id="a", attempt=1, what="started twice", first="w1", second="w2", at=START + 3
    )
    first, second = Side(worker="w1", delivery=1), Side(worker="w2", delivery=2)
    record = Conflict(
        request_id=REQUEST,
        task_id="a",
        attempt=1,
        kinds=(ConflictKind.STARTED_TWICE,),
        sides=(first, second),
        keep=first.id,
        stops=(second.id,),
        why="w2 was told to stop",
        found_at=START + 3,
    )

    later = record.model_copy(update={"found_at": NOW + 1e6})

    told = timeline(REQUEST, log.entries, [at(3, found_twice)], now=NOW, conflicts=[record])
    silent = timeline(REQUEST, log.entries, [], now=NOW, conflicts=[later])

    (conflict,) = steps(told, What.CONFLICT)
    assert (conflict.error, placed(conflict)) == ("started twice", (3.0, 3.0))
    assert conflict.details["keep"]["worker"] == "w1"
    assert [stop["worker"] for stop in conflict.details["stops"]] == ["w2"]
    assert [side["worker"] for side in conflict.details["sides"]] == ["w1", "w2"]
    assert told.totals.conflicts == silent.totals.conflicts == 1
    assert json.dumps(document_of(silent), allow_nan=False)
    assert placed(steps(silent, What.CONFLICT)[0])[0] == 500.0  # not after now, whatever its record says
