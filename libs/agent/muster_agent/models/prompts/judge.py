"""The prompt by which a model picks the best of several outputs."""

from muster_agent.models.port import JudgeBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of


def judge_prompt(brief: JudgeBrief, data: Boundary) -> Prompt:
    return prompt_of(
        "judge",
        data_rule=data.rule,
        request=data.request(brief.request) if brief.request else "",
        goal=brief.goal if brief.goal != brief.request else "",
        instruction=brief.instruction,
        outputs="\n\n".join(data(f"output of {name}", output) for name, output in brief.outputs.items()),
        contradictions=data("contradictions", "\n".join(brief.contradictions)) if brief.contradictions else "",
        names=", ".join(brief.outputs),
    )
