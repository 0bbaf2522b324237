"""Makes room in a model's context: the outputs of its earliest tool calls are shortened, the calls and replies stay.

What is shortened follows from the transcript alone, so a worker that takes a task over sends the same as the one before
it. It is shortened to well below the limit at once: what stays the same from one turn to the next is read from the
provider's cache, and every change of an early output ends that.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from muster_agent.budget import estimated_tokens, turn_tokens
from muster_agent.models.port import Ask, ToolOutput, Turn

ROOM = 0.6  # of the limit: what is left after it was reached
KEPT = 400  # characters of a shortened output, half from each end


def compacted(ask: Ask, context_tokens: int, acting: Collection[str] = ()) -> Ask:
    """The same ask, with early outputs shortened where all of it with its reply would not fit into the context.

    `acting` are the tools with an effect: nobody is told to call them again.
    """
    limit = context_tokens - ask.max_tokens
    empty = estimated_tokens(replace(ask, transcript=()))
    short = [_short(turn, acting) for turn in ask.transcript]
    shortened = _shortened_turns(ask.transcript, short, limit - empty)
    if not shortened:
        return ask
    turns = (*short[:shortened], *ask.transcript[shortened:])
    return replace(ask, transcript=turns)


def _shortened_turns(transcript: Sequence[Turn], shorter: Sequence[Turn], limit: int) -> int:
    """How many turns from the first on are shortened; the last one never is: the model has not seen it yet."""
    whole = [turn_tokens(turn) for turn in transcript]
    short = [turn_tokens(turn) for turn in shorter]
    shortened, used = 0, 0
    for number, tokens in enumerate(whole):
        used += tokens
        if used <= limit:
            continue
        while shortened < number and used > limit * ROOM:
            used -= whole[shortened] - short[shortened]
            shortened += 1
    return shortened


def _short(turn: Turn, acting: Collection[str]) -> Turn:
    named = {call.id: call.name for call in turn.reply.tool_calls}
    outputs = (_short_output(output, acts=named.get(output.call_id) in acting) for output in turn.outputs)
    return replace(turn, outputs=tuple(outputs))


def _short_output(output: ToolOutput, *, acts: bool) -> ToolOutput:
    left_out = len(output.text) - KEPT
    way_out = "its effect is there; do not call it again for them" if acts else "call the tool again if you need them"
    gap = f"\n[{left_out:,} characters are left out here to make room; {way_out}]\n"
    if left_out <= len(gap):
        return output
    return replace(output, text=f"{output.text[: KEPT // 2]}{gap}{output.text[-KEPT // 2 :]}")
