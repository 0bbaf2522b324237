"""What a record of a conflict says of its sides."""

import pytest

from muster_protocol.conflict import Conflict, Side, SideId
from muster_protocol.messages import ConflictFound


@pytest.mark.parametrize(
    ("side", "said"),
    [
        (SideId(worker="w1", delivery=2, task_sequence=7), "w1 (message 7, delivery 2)"),
        (SideId(worker="w1", delivery=2), "w1 (message ?, delivery 2)"),  # its result did not say which message
        (SideId(worker="", delivery=0, task_sequence=7), "message 7"),  # dispatched; nobody is known to have taken it
    ],
)
def test_a_side_is_named_by_what_is_known_of_it(side: SideId, said: str):
    assert str(side) == said


def test_a_record_knows_its_sides_by_their_ids():
    one, other = (Side(worker=worker, delivery=1, task_sequence=7) for worker in ("w1", "w2"))
    record = Conflict(request_id="r", task_id="t", attempt=1, sides=(one, other))

    assert record.side(other.id) is other
    assert record.side(SideId(worker="w3", delivery=1, task_sequence=7)) is None
    assert record.side(None) is None


def test_the_event_of_a_conflict_names_two_sides_and_of_equal_work_two_tasks():
    sides = tuple(Side(worker=worker, delivery=1, task_sequence=7) for worker in ("w1", "w2", "w3"))
    running = Conflict(request_id="r", task_id="t", attempt=1, sides=sides)
    equal = Conflict(request_id="r", task_id="t", attempt=0, tasks=("t", "u"))

    for record, named in ((running, [str(side.id) for side in sides[:2]]), (equal, ["t", "u"])):
        found = ConflictFound.of_record(record)
        assert [found.first, found.second] == named
    assert ConflictFound.of_record(Conflict(request_id="r", task_id="t", attempt=1)).first == ""
