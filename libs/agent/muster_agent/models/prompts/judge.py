"""The prompt by which a model picks the best of several outputs."""

from muster_agent.models.port import JudgeBrief
from muster_agent.models.prompts.boundary import data, data_rule
from muster_agent.models.prompts.text import Prompt, prompt_of


def judge_prompt(brief: JudgeBrief) -> Prompt:
    return prompt_of(
        "judge",
        data_rule=data_rule(),
        goal=data("goal", brief.goal),
        instruction=brief.instruction,
        outputs="\n\n".join(data(f"output of {name}", output) for name, output in brief.outputs.items()),
        contradictions=data("contradictions", "\n".join(brief.contradictions)) if brief.contradictions else "",
        names=", ".join(brief.outputs),
    )
