"""What a model is told: each prompt is a text in `texts/`, with a module that says what its blanks stand for."""

from typing import assert_never

from muster_agent.models.port import Ask, ComposeBrief, JudgeBrief, PlanBrief, ReduceBrief, RefineBrief, WorkBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.compose import compose_prompt
from muster_agent.models.prompts.judge import judge_prompt
from muster_agent.models.prompts.plan import plan_prompt
from muster_agent.models.prompts.reduce import reduce_prompt
from muster_agent.models.prompts.refine import refine_prompt
from muster_agent.models.prompts.replace import replace_prompt
from muster_agent.models.prompts.review import review_prompt
from muster_agent.models.prompts.text import Prompt
from muster_agent.models.prompts.work import work_prompt
from muster_agent.models.standing import ReplaceBrief, ReviewBrief


def prompt(ask: Ask) -> Prompt:
    """The system text and the user text of an ask; the turns that follow are not in them."""
    data = Boundary(ask.mark)
    match ask.brief:
        case PlanBrief() as brief:
            told = plan_prompt(brief, data)
        case WorkBrief() as brief:
            told = work_prompt(brief, data)
        case RefineBrief() as brief:
            told = refine_prompt(brief, data)
        case ReviewBrief() as brief:
            told = review_prompt(brief, data)
        case ReplaceBrief() as brief:
            told = replace_prompt(brief, data)
        case ComposeBrief() as brief:
            told = compose_prompt(brief, data)
        case JudgeBrief() as brief:
            told = judge_prompt(brief, data)
        case ReduceBrief() as brief:
            told = reduce_prompt(brief, data)
        case _:
            assert_never(ask.brief)
    return told
