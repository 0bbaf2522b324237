"""The offline model: fixed rules that plan, work, refine and review without an LLM, and say so."""

import asyncio
import json
from dataclasses import dataclass

from muster_agent.models.offline.growth import replace_by_rules, review_by_rules
from muster_agent.models.offline.plan import plan_by_rules
from muster_agent.models.offline.work import SIGNATURE, work_by_rules
from muster_agent.models.port import (
    FREE,
    Ask,
    ComposeBrief,
    JudgeBrief,
    PlanBrief,
    Price,
    ReduceBrief,
    RefineBrief,
    Reply,
    WorkBrief,
)
from muster_agent.models.standing import ReplaceBrief, ReviewBrief
from muster_protocol.errors import Terminal

_FAILED = "\n\nThe last attempt failed with: "


@dataclass(frozen=True, slots=True)
class Offline:
    """Rules, not an LLM. `seconds_per_answer` is a pause in place of the time that an LLM would take."""

    seconds_per_answer: float = 0.0
    notice: str = "the offline model plans and works by rules; it is not an LLM"
    name: str = SIGNATURE
    is_llm: bool = False
    provider: str = ""
    price: Price | None = FREE

    async def ask(self, ask: Ask) -> Reply:
        reply = _reply(ask)
        if self.seconds_per_answer and not reply.tool_calls:
            await asyncio.sleep(self.seconds_per_answer)
        return reply


def _reply(ask: Ask) -> Reply:
    match ask.brief:
        case PlanBrief() as brief:
            return Reply(text=plan_by_rules(brief).model_dump_json(exclude_defaults=True))
        case WorkBrief() as brief:
            return work_by_rules(ask, brief)
        case RefineBrief(description=description, error=error):
            return Reply(text=f"{description.partition(_FAILED)[0]}{_FAILED}{error}\nAvoid that.")
        case ReviewBrief() as brief:
            return Reply(text=json.dumps(review_by_rules(brief), ensure_ascii=False))
        case ReplaceBrief() as brief:
            return Reply(text=json.dumps(replace_by_rules(brief), ensure_ascii=False))
        case ComposeBrief() | JudgeBrief() | ReduceBrief():
            raise Terminal("rules do not compose; outputs are merged without a model")
