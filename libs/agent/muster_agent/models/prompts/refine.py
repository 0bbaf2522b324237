"""The prompt by which a model describes a failed task better."""

from muster_agent.models.port import RefineBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of


def refine_prompt(brief: RefineBrief, data: Boundary) -> Prompt:
    return prompt_of(
        "refine", data_rule=data.rule, task=data("task", brief.description), error=data("error", brief.error)
    )
