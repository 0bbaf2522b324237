"""What a model writes is published in few parts, whatever its speed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_bus.redact import Redactor
from muster_worker.runners import writing as module
from muster_worker.runners.writing import EVERY_SECONDS, MAX_PART, MAX_PARTS, Writing


@given(st.lists(st.tuples(st.text(min_size=1, max_size=9), st.floats(min_value=0, max_value=0.4)), max_size=200))
def test_nothing_is_lost_and_no_two_parts_come_within_a_second(texts: list[tuple[str, float]]):
    now = 0.0
    parts: list[tuple[float, str]] = []
    writing = Writing(lambda text: parts.append((now, text)), lambda: now)
    for text, seconds in texts:
        now += seconds
        writing(text)
    last = len(parts)
    writing.finish()

    written = "".join(text for text, _ in texts)
    assert "".join(text for _, text in parts).split() == written.split()
    times = [0.0, *(time for time, _ in parts[:last])]
    assert all(after - before >= EVERY_SECONDS for before, after in pairwise(times))


def test_no_part_has_half_a_secret(monkeypatch: pytest.MonkeyPatch):
    known = Redactor([("SHOP_KEY", "sk-shop-12345")])
    monkeypatch.setattr(module, "KNOWN", known)
    parts: list[str] = []
    now = 0.0
    writing = Writing(parts.append, lambda: now)
    for text in ("the key is sk-sh", "op-123", "45 and that", " is it"):
        now += EVERY_SECONDS
        writing(text)
    writing.finish()

    assert parts == ["the key is ", "[redacted SHOP_KEY] and ", "that is ", "it"]


def test_parts_and_their_number_are_bounded():
    parts: list[str] = []
    now = 0.0
    writing = Writing(parts.append, lambda: now)
    for _ in range(2 * MAX_PARTS):
        now += EVERY_SECONDS
        writing("x" * 2 * MAX_PART)

    assert len(parts) == MAX_PARTS
    assert {len(part) for part in parts} == {MAX_PART}
