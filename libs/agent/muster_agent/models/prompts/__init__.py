"""What a model is told: each prompt is a text in `texts/`, with a module that says what its blanks stand for."""

from typing import assert_never

from muster_agent.models.port import Brief, ComposeBrief, PlanBrief, RefineBrief, WorkBrief
from muster_agent.models.prompts.compose import compose_prompt
from muster_agent.models.prompts.plan import plan_prompt
from muster_agent.models.prompts.refine import refine_prompt
from muster_agent.models.prompts.text import Prompt
from muster_agent.models.prompts.work import work_prompt


def prompt(brief: Brief) -> Prompt:
    """The system text and the user text of a brief."""
    match brief:
        case PlanBrief():
            return plan_prompt(brief)
        case WorkBrief():
            return work_prompt(brief)
        case RefineBrief():
            return refine_prompt(brief)
        case ComposeBrief():
            return compose_prompt(brief)
        case _:
            assert_never(brief)
