"""The prompt by which a model says what takes the place of what was lost with a failed task, or that the gap stays."""

from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.standing import blanks_of, cut, mended
from muster_agent.models.prompts.text import Prompt, prompt_of
from muster_agent.models.standing import ReplaceBrief

MAX_ERROR, MAX_SKIPPED = 600, 50


def replace_prompt(brief: ReplaceBrief, data: Boundary) -> Prompt:
    skipped = ", ".join(brief.skipped[:MAX_SKIPPED])
    more = f" and {len(brief.skipped) - MAX_SKIPPED:,} more" if len(brief.skipped) > MAX_SKIPPED else ""
    errors = "\n".join(f"{number}. {cut(error, MAX_ERROR)}" for number, error in enumerate(brief.errors, 1))
    return prompt_of(
        "replace",
        **blanks_of(brief.standing, data),
        failed=brief.failed,
        errors=data("errors of its attempts", errors),
        tried=", ".join(brief.tried),
        skipped=skipped + more,
        repair=mended(brief.draft, brief.mistakes, data),
    )
