"""The prompt by which a model does one task."""

import json

from muster_agent.models.port import WorkBrief
from muster_agent.models.prompts.boundary import data, data_rule
from muster_agent.models.prompts.text import Prompt, prompt_of, text_of

LAST_TURN = text_of("last_turn")


def work_prompt(brief: WorkBrief) -> Prompt:
    wanted = brief.expected_output
    context = [data("inputs", dict(brief.inputs))] if brief.inputs else []
    context += [data(f"output of {task_id}", output) for task_id, output in brief.context.items()]
    return prompt_of(
        "work",
        persona=brief.persona.strip() or "You are a careful specialist.",
        data_rule=data_rule(),
        description=brief.description,
        expected=wanted if isinstance(wanted, str) else "",
        schema=json.dumps(wanted, ensure_ascii=False) if wanted is not None and not isinstance(wanted, str) else "",
        given="\n\n".join(context),
    )
