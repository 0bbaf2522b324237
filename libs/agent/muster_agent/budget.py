"""Limits what an attempt may spend, by limiting the length of the model's next answer."""

import json
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from muster_agent.errors import OutOfBudget
from muster_agent.models.port import NOTHING, Ask, Model
from muster_agent.models.prompts import prompt
from muster_protocol.errors import Misconfigured
from muster_protocol.messages import Usage

MIN_ANSWER_TOKENS = 128  # a shorter answer ends in the middle of a sentence
_CHARACTERS_PER_TOKEN = 3  # an estimate on the safe side: English has about four


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be spent; None is no limit."""

    tokens: int | None = None
    usd: float | None = None


@dataclass(slots=True)
class Meter:
    """What may be spent and what was spent; kept outside the loop, so that failed attempts are charged too."""

    limit: Limit = Limit()
    usage: Usage = NOTHING
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    model: str = ""  # that is asked, with its provider
    asking: str = ""  # the provider whose reply is waited for, or that gave none
    began: float = field(default_factory=time.monotonic)  # the calls are placed from here on

    @property
    def has_spent_of_limit(self) -> bool:
        """Whether another run of the same attempt, which may spend as much again, would go beyond the limit."""
        return self.limit != Limit() and (self.usage != NOTHING or bool(self.asking))


def within_budget(ask: Ask, model: Model, spent: Usage, limit: Limit) -> Ask:
    """The same ask with an answer that the rest of the budget can pay for; an error if no useful one can be paid."""
    if not model.is_llm or (limit.tokens is None and limit.usd is None):
        return ask
    asked = estimated_tokens(ask)
    affordable = ask.max_tokens
    if limit.tokens is not None:
        affordable = min(affordable, limit.tokens - spent.tokens - asked)
    if limit.usd is not None:
        affordable = min(affordable, _tokens_for_usd(model, asked, limit.usd - spent.usd, affordable))
    if affordable < MIN_ANSWER_TOKENS:
        raise OutOfBudget(
            f"the budget is used up: spent {spent.tokens:,} of {_shown(limit.tokens)} tokens and {spent.usd:.4f} of "
            f"{_shown(limit.usd)} USD; the next call needs about {asked + MIN_ANSWER_TOKENS:,} tokens"
        )
    return replace(ask, max_tokens=affordable)


def estimated_tokens(ask: Ask) -> int:
    """About how many tokens the ask itself costs; an overestimate rather than an underestimate."""
    parts: list[object] = [*prompt(ask), *(asdict(tool) for tool in ask.tools)]
    for turn in ask.transcript:
        parts += [{"native": str(turn.reply.native or turn.reply.text)}, *(asdict(output) for output in turn.outputs)]
    return len(json.dumps(parts, default=str, ensure_ascii=False)) // _CHARACTERS_PER_TOKEN


def _tokens_for_usd(model: Model, asked: int, usd_left: float, wanted: int) -> int:
    if model.price is None:
        raise Misconfigured(f"a budget in USD needs the price of {model.name}; add it to the team file under prices")
    for_answer = usd_left - model.price.most_usd(asked, 0)
    if model.price.output == 0:
        return wanted if for_answer >= 0 else 0
    return int(for_answer * 1_000_000 / model.price.output)


def _shown(number: float | None) -> str:
    return "unlimited" if number is None else f"{number:,}"
