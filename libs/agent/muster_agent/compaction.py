"""Makes room in a model's context: the outputs of its earliest tool calls are shortened, the calls and replies stay.

What is shortened follows from the transcript alone, so a worker that takes a task over sends the same as the one before
it. It is shortened to well below the limit at once: what stays the same from one turn to the next is read from the
provider's cache, and every change of an early output ends that.
"""

from collections.abc import Sequence
from dataclasses import replace

from muster_agent.budget import estimated_tokens, turn_tokens
from muster_agent.models.port import Ask, ToolOutput, Turn

ROOM = 0.6  # of the limit: what is left after it was reached
KEPT = 400  # characters of a shortened output, half from each end


def compacted(ask: Ask, context_tokens: int) -> Ask:
    """The same ask, with early outputs shortened where all of it with its reply would not fit into the context."""
    limit = context_tokens - ask.max_tokens
    empty = estimated_tokens(replace(ask, transcript=()))
    shortened = _shortened_turns(ask.transcript, limit - empty)
    if not shortened:
        return ask
    turns = (*(_short(turn) for turn in ask.transcript[:shortened]), *ask.transcript[shortened:])
    return replace(ask, transcript=turns)


def _shortened_turns(transcript: Sequence[Turn], limit: int) -> int:
    """How many turns from the first on are shortened; the last one never is: the model has not seen it yet."""
    whole = [turn_tokens(turn) for turn in transcript]
    short = [turn_tokens(_short(turn)) for turn in transcript]
    shortened, used = 0, 0
    for number, tokens in enumerate(whole):
        used += tokens
        if used <= limit:
            continue
        while shortened < number and used > limit * ROOM:
            used -= whole[shortened] - short[shortened]
            shortened += 1
    return shortened


def _short(turn: Turn) -> Turn:
    return replace(turn, outputs=tuple(_short_output(output) for output in turn.outputs))


def _short_output(output: ToolOutput) -> ToolOutput:
    left_out = len(output.text) - KEPT
    gap = f"\n[{left_out:,} characters are left out here to make room; call the tool again if you need them]\n"
    if left_out <= len(gap):
        return output
    return replace(output, text=f"{output.text[: KEPT // 2]}{gap}{output.text[-KEPT // 2 :]}")
