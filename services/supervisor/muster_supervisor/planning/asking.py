"""Asks a model by what a plan is to grow; a reply with mistakes goes back to it once, with all of them."""

from collections.abc import Callable
from dataclasses import replace

from muster_agent.budget import MIN_ANSWER_TOKENS, estimated_tokens
from muster_agent.errors import BadOutput, OutOfBudget
from muster_agent.models.port import Ask, Model, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_agent.models.standing import ReplaceBrief, ReviewBrief
from muster_protocol.fold import Left
from muster_supervisor.planning.verdict import Verdict

MAX_VERDICT_TOKENS = 4_096  # some twenty tasks; most replies are two sentences
MAX_NAMED = 5  # mistakes in one reason: more would hide the first
WORTH = 2  # times what the call costs must be left: a verdict that nobody can act upon is not worth its price

Read = Callable[[str], Verdict]


async def verdict_of(brief: ReviewBrief | ReplaceBrief, model: Model, left: Left, read: Read) -> Verdict:
    """What the model says; an error when it says nothing that can be used, or when asking it is not worth its cost."""
    ask = Ask(brief, max_tokens=MAX_VERDICT_TOKENS)
    if model.is_llm:
        check_worth(ask, model, left)
    text = require_complete(await ask_with_retry(model, ask)).text
    verdict = read(text)
    if verdict.mistakes:
        again = replace(brief, draft=text, mistakes=tuple(verdict.mistakes))
        reply = await ask_with_retry(model, Ask(again, max_tokens=MAX_VERDICT_TOKENS))
        verdict = read(require_complete(reply).text)
    if verdict.mistakes:
        more = f"; and {len(verdict.mistakes) - MAX_NAMED} more" if len(verdict.mistakes) > MAX_NAMED else ""
        named = "; ".join(verdict.mistakes[:MAX_NAMED]) + more
        raise BadOutput(f"{model.name} said nothing that can be used: {named}")
    return verdict


def check_worth(ask: Ask, model: Model, left: Left) -> None:
    """Raise unless what is left pays for the call and for something that comes of it."""
    asked = estimated_tokens(ask)
    tokens = WORTH * (asked + MIN_ANSWER_TOKENS)
    if left.tokens is not None and left.tokens < tokens:
        raise OutOfBudget(f"{left.tokens:,} tokens are left, and a look at the results needs about {tokens:,} to pay")
    if left.usd is None or model.price is None:
        return
    usd = WORTH * model.price.usd(asked, MIN_ANSWER_TOKENS)
    if left.usd < usd:
        raise OutOfBudget(f"{left.usd:.4f} USD are left, and a look at the results needs about {usd:.4f} to pay")
