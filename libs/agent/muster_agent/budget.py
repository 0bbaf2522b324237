"""Limits what an attempt may spend, by limiting the length of the model's next answer."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any

from muster_agent.errors import OutOfBudget
from muster_agent.models.port import NOTHING, Ask, Model, Turn
from muster_agent.models.prompts import prompt
from muster_agent.turns import UNSTORED, Turns
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
    usage: Usage = NOTHING  # of the attempt, also by workers that had it before
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    model: str = ""  # that is asked, with its provider
    asking: str = ""  # the provider whose reply is waited for, or that gave none
    began: float = field(default_factory=time.monotonic)  # the calls are placed from here on

    turns: Turns = UNSTORED  # where what is paid for is kept
    before: Usage | None = None  # spent for the task's former attempts; None: no turns are stored
    _acting: int = 0  # calls of tools with an effect that are under way

    @property
    def spent(self) -> Usage | None:
        """What the task has cost up to here, as its turns say; None where none are stored."""
        return None if self.before is None else self.before + self.usage

    @property
    def must_go_on(self) -> bool:
        """Whether a call is under way that would be paid for nothing if the attempt were handed back now, or an effect
        of which nobody would know then whether it has happened."""
        return self._acting > 0 or (self.limit != Limit() and bool(self.asking))

    @contextmanager
    def acting(self, *, is_known_again: bool) -> Generator[None]:
        """While a tool with an effect is called; `is_known_again`: its receiver can tell that a call is the same."""
        self._acting += not is_known_again
        try:
            yield
        finally:
            self._acting -= not is_known_again


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


def most_of(ask: Ask, model: Model, limit: Limit) -> Usage:
    """The most that a call can cost; where nothing is limited nobody needs to know."""
    if not model.is_llm or limit == Limit():
        return NOTHING
    asked = estimated_tokens(ask)
    usd = 0.0 if model.price is None else model.price.most_usd(asked, ask.max_tokens)
    return Usage(input_tokens=asked, output_tokens=ask.max_tokens, usd=usd, model_calls=1)


def estimated_tokens(ask: Ask) -> int:
    """About how many tokens the ask itself costs; an overestimate rather than an underestimate."""
    parts = [*prompt(ask), *(asdict(tool) for tool in ask.tools)]
    return _tokens_of(parts) + sum(map(turn_tokens, ask.transcript))


def turn_tokens(turn: Turn) -> int:
    """About how many tokens one turn adds to each ask that follows it."""
    return _tokens_of([str(turn.reply.native or turn.reply.text), *(asdict(output) for output in turn.outputs)])


def _tokens_of(parts: list[Any]) -> int:
    return ceil(len(json.dumps(parts, default=str, ensure_ascii=False)) / _CHARACTERS_PER_TOKEN)


def _tokens_for_usd(model: Model, asked: int, usd_left: float, wanted: int) -> int:
    if model.price is None:
        raise Misconfigured(f"a budget in USD needs the price of {model.name}; add it to the team file under prices")
    for_answer = usd_left - model.price.most_usd(asked, 0)
    if model.price.output == 0:
        return wanted if for_answer >= 0 else 0
    return int(for_answer * 1_000_000 / model.price.output)


def _shown(number: float | None) -> str:
    return "unlimited" if number is None else f"{number:,}"
