"""An attempt's id is written and read in one place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid

IDS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)


@given(IDS, IDS, st.integers(0, 10**9))
def test_what_was_written_is_read_back(request_id: str, task_id: str, attempt: int):
    attempt_id = AttemptId(request_id, task_id, attempt)

    assert AttemptId.parse(str(attempt_id)) == attempt_id


@pytest.mark.parametrize(
    "text", ["", "r.t", "r.t.x", "r.t.1.2", "r..1", ".t.1", "r.t.-1", "r.t.1.", "r t.t.1", "r.t.\u0663"]
)
def test_what_is_no_attempt_is_refused(text: str):
    with pytest.raises(Invalid):
        AttemptId.parse(text)
