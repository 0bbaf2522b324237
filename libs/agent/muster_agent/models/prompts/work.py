"""The prompt by which a model does one task, and what it is told of what is left at each of its turns."""

import json

from muster_agent.models.port import Left, WorkBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of, text_of

LAST_TURN = text_of("last_turn")


def work_prompt(brief: WorkBrief, data: Boundary) -> Prompt:
    wanted = brief.expected_output
    context = [data("inputs", dict(brief.inputs))] if brief.inputs else []
    context += [data(f"output of {task_id}", output) for task_id, output in brief.context.items()]
    return prompt_of(
        "work",
        persona=brief.persona.strip() or "You are a careful specialist.",
        guidelines=brief.guidelines.strip(),
        data_rule=data.rule,
        description=brief.description,
        expected=wanted if isinstance(wanted, str) else "",
        schema=json.dumps(wanted, ensure_ascii=False) if wanted is not None and not isinstance(wanted, str) else "",
        given="\n\n".join(context),
        notes="\n".join(data.request(note) for note in brief.notes),
    )


def left_text(left: Left) -> str:
    """How much is left, as a model is told with each of its turns."""
    return text_of(
        "left",
        turns="1 reply" if left.turns == 1 else f"{left.turns:,} replies",
        tokens="" if left.tokens is None else f"{left.tokens:,}",
        seconds="" if left.seconds is None else f"{left.seconds:,}",
    )
