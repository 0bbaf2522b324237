"""Headers: nothing without a sender and a known kind, and enough to count without reading bodies."""

import pytest

from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.headers import headers_of, request_hash, request_id_of, require_kind, require_sender, sender_of
from muster_protocol.messages import LOG_KINDS, Result, Started, Usage
from muster_protocol.sender import Origin, Sender
from tests.guards import guards
from tests.unit.protocol.log_builder import answer, result, taken

WORKER = Origin("r1", Sender("worker", "w1", "math"))


@pytest.mark.parametrize("sender", ["client/c1", "supervisor/s-1.local", "worker/w1/math"])
def test_a_sender_is_a_service_and_an_instance_and_for_workers_a_role(sender: str):
    assert require_sender({h.SENDER: sender}) == sender


@guards("libs/protocol/muster_protocol/headers.py", "if not _is_sender(sender):", rule="I10")
@pytest.mark.parametrize(
    "sender", ["Worker/w1", "anonymous", "worker/", "/w1", "a/b/c/d", "worker/w 1", "worker/w1\n", "1"]
)
def test_i10_a_sender_of_another_shape_is_refused(sender: str):
    with pytest.raises(Invalid, match="sender: "):
        require_sender({h.SENDER: sender})


@pytest.mark.parametrize("headers", [None, {}, {h.SENDER: ""}])
def test_i10_a_message_without_a_sender_is_refused(headers: dict[str, str] | None):
    with pytest.raises(Invalid, match="no sender header"):
        require_sender(headers)


def test_i10_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(Invalid, match=r"unknown kind 'replan'; known here: answer, decision, dispatched, extended,"):
        require_kind({h.KIND: "replan"}, LOG_KINDS)
    assert require_kind({h.KIND: "result"}, LOG_KINDS) is Result


def test_i10_a_message_without_headers_has_no_kind():
    with pytest.raises(Invalid, match="unknown kind ''"):
        require_kind(None, LOG_KINDS)


@pytest.mark.parametrize("headers", [None, {}, {h.SENDER: "anybody"}])
def test_what_claims_no_sender_is_told_apart_from_one_that_does(headers: dict[str, str] | None):
    assert sender_of(headers) == ""
    assert sender_of({h.SENDER: "client/c1"}) == "client/c1"


def test_the_same_request_is_the_same_text_for_the_same_team():
    assert request_hash("requests.a", None, b"text") == request_hash("requests.a", {h.SENDER: "client/c1"}, b"text")
    assert request_hash("requests.a", None, b"text") != request_hash("requests.b", None, b"text")
    assert request_hash("requests.a", None, b"text") != request_hash("requests.a", None, b"other")


def test_a_body_that_lies_elsewhere_is_told_apart_by_its_reference():
    one, other = ({h.BODY_REF: f"{digit * 64}.7"} for digit in "ab")

    assert request_hash("requests.a", one, b"") != request_hash("requests.a", other, b"")


def test_a_request_is_named_by_its_message_id_then_by_its_body_then_by_its_place():
    body = b'{"id": "mine", "text": "?"}'

    assert request_id_of({h.MESSAGE_ID: "theirs"}, 7, body) == "theirs"
    assert request_id_of({}, 7, body) == request_id_of(None, 7, body) == "mine"
    assert request_id_of(None, 7, b"no json").startswith("7-")
    assert request_id_of(None, 7, b'{"text": "?"}').startswith("7-")


def test_a_request_whose_body_lies_elsewhere_is_named_by_its_header():
    assert request_id_of({h.BODY_REF: "a.7", h.REQUEST_ID: "mine"}, 7, b"") == "mine"


def test_every_message_has_its_sender_kind_and_request():
    found = headers_of(taken("s1"), Origin("r1", Sender("supervisor", "s1"), term=4))

    assert found == {
        "sender": "supervisor/s1",
        "kind": "taken",
        "schema": "1",
        "request-id": "r1",
        "Nats-Msg-Id": "r1.taken.s1.1.1",
        "term": "4",
    }


def test_a_result_can_be_counted_by_its_headers_alone():
    body = result("t", 2).model_copy(update={"usage": Usage(input_tokens=3, output_tokens=4, usd=0.5, model_calls=1)})

    found = headers_of(body, WORKER)

    counted = {name: found[name] for name in ("task", "attempt", "status", "delivery", "seconds")}
    assert counted == {
        "task": "t",
        "attempt": "2",
        "status": "done",
        "delivery": "1",
        "seconds": "1.0",
    }
    assert (found["tokens"], found["usd"], found["sender"]) == ("7", "0.500000", "worker/w1/math")
    assert "term" not in found


def test_an_answer_and_a_start_can_be_counted_by_their_headers_alone():
    started = Started(request_id="r1", task_id="t", attempt=1, worker="w1", role="math", delivery=2, task_sequence=9)

    assert headers_of(answer(), WORKER)["status"] == "done"
    assert headers_of(started, WORKER)["task-sequence"] == "9"
