"""The prompt by which a model looks at the results of a round, and says whether more work is worth its cost."""

from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.standing import blanks_of, mended
from muster_agent.models.prompts.text import Prompt, prompt_of
from muster_agent.models.standing import ReviewBrief


def review_prompt(brief: ReviewBrief, data: Boundary) -> Prompt:
    found = brief.standing.contradictions
    return prompt_of(
        "review",
        **blanks_of(brief.standing, data),
        contradictions=data("contradictions", "\n".join(found)) if found else "",
        number=str(brief.number),
        rounds=str(brief.rounds),
        repair=mended(brief.draft, brief.mistakes, data),
    )
