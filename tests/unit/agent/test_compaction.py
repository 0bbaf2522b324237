"""A transcript that grows beyond the context: early outputs are shortened, and nothing else changes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from muster_agent.budget import estimated_tokens
from muster_agent.compaction import compacted
from muster_agent.models.port import Ask, Reply, ToolCall, ToolOutput, Turn, WorkBrief

TEXTS = st.integers(0, 6_000).map(lambda length: "x" * length)


def turn(number: int, *texts: str) -> Turn:
    calls = tuple(ToolCall(f"{number}-{n}", "read", {}) for n in range(len(texts)))
    outputs = tuple(ToolOutput(call.id, text) for call, text in zip(calls, texts, strict=True))
    return Turn(Reply(f"reply {number}", calls, stop="tools"), outputs)


def ask(*turns: Turn) -> Ask:
    return Ask(WorkBrief("read it all"), transcript=turns, max_tokens=1_000)


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=12), st.integers(5_000, 20_000))
def test_replies_calls_and_the_last_outputs_are_never_touched(texts: list[list[str]], context: int):
    whole = ask(*(turn(number, *each) for number, each in enumerate(texts)))

    sent = compacted(whole, context)

    assert [each.reply for each in sent.transcript] == [each.reply for each in whole.transcript]
    assert [[o.call_id for o in each.outputs] for each in sent.transcript] == [
        [o.call_id for o in each.outputs] for each in whole.transcript
    ]
    assert sent.transcript[-1:] == whole.transcript[-1:]
    assert estimated_tokens(sent) <= estimated_tokens(whole)


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=2), min_size=2, max_size=12))
def test_what_was_shortened_once_stays_so_and_a_takeover_sends_the_same(texts: list[list[str]]):
    turns = [turn(number, *each) for number, each in enumerate(texts)]
    before = compacted(ask(*turns[:-1]), 8_000).transcript
    after = compacted(ask(*turns), 8_000).transcript

    changed = [old != whole for old, whole in zip(before, turns, strict=False)]
    assert all(new != whole for new, whole, was in zip(after, turns, changed, strict=False) if was)
    assert compacted(ask(*turns), 8_000).transcript == after


def test_a_full_context_gets_room_at_once_and_the_next_turn_changes_nothing():
    turns = [turn(number, "y" * 3_000) for number in range(9)]
    context = estimated_tokens(ask(*turns)) + 1_000 - 1

    first = compacted(ask(*turns), context)
    following = compacted(ask(*turns, turn(9, "y" * 300)), context)

    assert estimated_tokens(first) < 0.7 * context
    assert "characters are left out here to make room" in first.transcript[0].outputs[0].text
    assert following.transcript[:-1] == first.transcript


def test_what_fits_is_sent_as_it_is():
    small = ask(turn(0, "z" * 3_000), turn(1, "z"))

    assert compacted(small, 100_000) is small
    assert compacted(replace(small, transcript=()), 100) == replace(small, transcript=())
