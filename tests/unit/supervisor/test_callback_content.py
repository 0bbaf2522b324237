"""What a receiver is sent: the answer, and no more than fits."""

import json

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Answer, AnswerStatus
from muster_supervisor.calling.content import content


def answer(text: str = "found", output: object = None) -> Answer:
    return Answer(request_id="r1", status=AnswerStatus.DONE, text=text, output=output, gaps=("a: late",))


def test_it_is_the_answer_as_the_log_has_it() -> None:
    sent = json.loads(content(answer(output={"n": 1}), "shop", 12.5))

    assert sent == {
        "request_id": "r1",
        "team": "shop",
        "status": "done",
        "text": "found",
        "output": {"n": 1},
        "gaps": ["a: late"],
        "answered_at": 12.5,
    }


def test_a_large_output_is_left_out_and_said_to_be() -> None:
    sent = json.loads(content(answer(output="x" * 3000), "shop", 0.0, 2000))

    assert sent["text"] == "found"
    assert "output" not in sent
    assert sent["truncated"] is True
    assert "/v1/requests/r1" in sent["read"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=3000), st.integers(0, 3000))
def test_it_is_never_larger_than_it_may_be(text: str, size: int) -> None:
    body = content(answer(text, "x" * size), "shop", 0.0, 1000)

    sent = json.loads(body)
    assert len(body) <= 1000
    assert sent["status"] == "done"
    assert sent.get("truncated", False) is (sent.get("output") is None)
    assert sent["text"] == text or sent["text"].removesuffix(" …") == text[: len(sent["text"]) - 2]
