"""The prompt by which a model makes outputs shorter before they are combined."""

from muster_agent.models.port import ReduceBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of


def reduce_prompt(brief: ReduceBrief, data: Boundary) -> Prompt:
    return prompt_of(
        "reduce",
        data_rule=data.rule,
        request=data.request(brief.request) if brief.request else "",
        goal=brief.goal if brief.goal != brief.request else "",
        outputs="\n\n".join(data(f"output of {name}", output) for name, output in brief.outputs.items()),
    )
