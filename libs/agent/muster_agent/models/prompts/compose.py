"""The prompt by which a model makes one answer of the outputs of the tasks."""

from muster_agent.models.port import ComposeBrief
from muster_agent.models.prompts.boundary import data, data_rule
from muster_agent.models.prompts.text import Prompt, prompt_of


def compose_prompt(brief: ComposeBrief) -> Prompt:
    return prompt_of(
        "compose",
        data_rule=data_rule(),
        goal=data("goal", brief.goal),
        instruction=brief.instruction,
        outputs="\n\n".join(data(f"output of {task_id}", output) for task_id, output in brief.outputs.items()),
        missing=data("missing", "\n".join(brief.gaps)) if brief.gaps else "",
    )
