"""The prompt by which a model makes outputs shorter before they are combined."""

from muster_agent.models.port import ReduceBrief
from muster_agent.models.prompts.boundary import data, data_rule
from muster_agent.models.prompts.text import Prompt, prompt_of


def reduce_prompt(brief: ReduceBrief) -> Prompt:
    return prompt_of(
        "reduce",
        data_rule=data_rule(),
        goal=data("goal", brief.goal),
        outputs="\n\n".join(data(f"output of {name}", output) for name, output in brief.outputs.items()),
    )
