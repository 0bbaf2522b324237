"""The prompt by which a model breaks a request into tasks, and the turn in which it mends a refused plan."""

from muster_agent.models.port import PlanBrief
from muster_agent.models.prompts.boundary import data, data_rule
from muster_agent.models.prompts.text import Prompt, prompt_of, text_of


def plan_prompt(brief: PlanBrief) -> Prompt:
    roles = "\n".join(f"- {role.name} (tags: {', '.join(role.tags)}): {role.description}" for role in brief.roles)
    return prompt_of(
        "plan",
        persona=brief.persona.strip(),
        roles=roles,
        data_rule=data_rule(),
        request=data("request", brief.text),
        num_tasks="" if brief.num_tasks is None else str(brief.num_tasks),
        max_tasks="" if brief.max_tasks is None else str(brief.max_tasks),
        repair=_repair(brief) if brief.mistakes else "",
    )


def _repair(brief: PlanBrief) -> str:
    mistakes = "\n".join(f"- {mistake}" for mistake in brief.mistakes)
    return text_of("repair", draft=data("refused plan", brief.draft), mistakes=mistakes)
