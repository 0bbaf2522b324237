"""The prompt by which a model makes one answer of the outputs of the tasks."""

import json
from collections.abc import Iterator

from muster_agent.models.port import ComposeBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of, text_of


def compose_prompt(brief: ComposeBrief, data: Boundary) -> Prompt:
    return prompt_of(
        "compose",
        data_rule=data.rule,
        request=data.request(brief.request) if brief.request else "",
        goal=brief.goal if brief.goal != brief.request else "",
        instruction=brief.instruction,
        notes="\n".join(data.request(note) for note in brief.notes),
        outputs="\n\n".join(_outputs(brief, data)),
        missing=data("missing", "\n".join(brief.gaps)) if brief.gaps else "",
        schema="" if brief.schema is None else json.dumps(brief.schema, ensure_ascii=False),
        repair=_repair(brief, data) if brief.mistakes else "",
        contradictions=data("contradictions", "\n".join(brief.contradictions)) if brief.contradictions else "",
    )


def _repair(brief: ComposeBrief, data: Boundary) -> str:
    mistakes = "\n".join(f"- {mistake}" for mistake in brief.mistakes)
    return text_of("mend", draft=data("refused answer", brief.draft), mistakes=mistakes)


def _outputs(brief: ComposeBrief, data: Boundary) -> Iterator[str]:
    """Each output after what was asked for."""
    for task_id, output in brief.outputs.items():
        if task_id in brief.asked:
            yield data(f"task {task_id}", brief.asked[task_id])
        yield data(f"output of {task_id}", output)
