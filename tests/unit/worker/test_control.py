"""Which control messages stop which attempts of a worker."""

import pytest

from muster_bus.connection import Incoming
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import SideId
from muster_protocol.headers import headers_of
from muster_protocol.messages import Abort, Cancel, Check, Note
from muster_protocol.sender import Origin, Sender
from muster_worker.control import MAX_REMEMBERED, Control, order_in, stopped_by

OWNER = Sender("supervisor", "s1")
RUNNING = [AttemptId("r1", "a", 1), AttemptId("r1", "a", 2), AttemptId("r1", "b", 1), AttemptId("r2", "a", 1)]


def control(message: Abort | Cancel | Check | Note, sender: Sender = OWNER, subject: str = "control.r1") -> Incoming:
    return Incoming(subject, "", message.body(), headers_of(message, Origin(message.request_id, sender)))


def test_an_abort_of_the_owner_or_the_coordinator_is_accepted():
    abort = Abort(request_id="r1", attempts=(("a", 1),))

    assert order_in(control(abort)) == abort
    assert order_in(control(abort, Sender("coordinator", "c1"))) == abort


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(control(Cancel(request_id="r1")), id="a cancel, which the owner decides on"),
        pytest.param(control(Abort(request_id="r1"), Sender("worker", "w2")), id="from a worker"),
        pytest.param(control(Abort(request_id="r2")), id="about another request than its subject"),
        pytest.param(Incoming("control.r1", "", b"{}", None), id="without headers"),
        pytest.param(Incoming("control.r1", "", b"no JSON", control(Abort(request_id="r1")).headers), id="unreadable"),
    ],
)
def test_any_other_control_message_stops_nothing(message: Incoming):
    assert order_in(message) is None


def test_a_check_of_the_coordinator_is_accepted():
    check = Check(request_id="r1", attempts=(("a", 1),))

    assert order_in(control(check, Sender("coordinator", "c1"))) == check
    assert order_in(control(check, Sender("client", "c1"))) is None


def test_a_note_is_a_person_s():
    note = Note(request_id="r1", text="in French")

    assert order_in(control(note, Sender("client", "c1"))) == note
    assert order_in(control(note, Sender("worker", "w1"))) is None


def test_an_abort_stops_the_attempts_that_it_lists():
    assert stopped_by(Abort(request_id="r1", attempts=(("a", 2), ("c", 1))), RUNNING) == [AttemptId("r1", "a", 2)]


def test_an_abort_that_lists_no_attempts_stops_all_of_its_request():
    assert stopped_by(Abort(request_id="r1"), RUNNING) == RUNNING[:3]


def test_a_request_is_cancelled_by_an_abort_of_all_its_attempts_only():
    remembered = Control({})

    remembered.on_message(control(Abort(request_id="r1", attempts=(("a", 1),))))
    assert not remembered.is_cancelled("r1")

    remembered.on_message(control(Abort(request_id="r1")))
    assert remembered.is_cancelled("r1")


def test_the_oldest_cancelled_request_is_forgotten_first():
    remembered = Control({})

    for number in range(MAX_REMEMBERED + 1):
        remembered.on_message(control(Abort(request_id=f"r{number}"), subject=f"control.r{number}"))

    assert not remembered.is_cancelled("r0")
    assert remembered.is_cancelled("r1")
    assert remembered.is_cancelled(f"r{MAX_REMEMBERED}")


def test_an_abort_of_one_side_cancels_no_request_also_if_it_lists_no_attempt():
    remembered = Control({})
    side = SideId(worker="w1", delivery=1, task_sequence=7)

    remembered.on_message(control(Abort(request_id="r1", side=side), Sender("coordinator", "c1")))

    assert not remembered.is_cancelled("r1")
