"""The prompt by which a model breaks a request into tasks, and the turn in which it mends a refused plan."""

from muster_agent.models.port import PlanBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of, text_of
from muster_protocol.workers.role_card import RoleCard, line


def plan_prompt(brief: PlanBrief, data: Boundary) -> Prompt:
    return prompt_of(
        "plan",
        persona=brief.persona.strip(),
        roles="\n".join(role_line(role, is_away=role.name in brief.away) for role in brief.roles),
        guidelines=brief.guidelines.strip(),
        workers=", ".join(brief.workers),
        examples=text_of("plan_examples"),
        data_rule=data.rule,
        request=data.request(brief.text),
        today=brief.today,
        seconds="" if brief.seconds is None else f"{brief.seconds:,.0f}",
        tokens=_number(brief.tokens),
        usd="" if brief.usd is None else f"{brief.usd:g}",
        max_attempts=_number(brief.max_attempts),
        num_tasks=_number(brief.num_tasks),
        max_tasks=_number(brief.max_tasks),
        repair=_repair(brief, data) if brief.mistakes else "",
    )


def role_line(role: RoleCard, *, is_away: bool = False) -> str:
    """What a planner reads of a role."""
    said = [line(role.description) or "no description"]
    if role.is_function:
        inputs = "; ".join(f"{name}: {about}" if about else name for name, about in role.inputs.items())
        said.append(f"A function: it computes with its inputs and reads no prose. Inputs: {line(inputs) or 'any'}")
    said += [f"Tools: {line(', '.join(role.tools))}"] if role.tools else []
    said += [f"Documents: {line(role.corpus)}"] if role.corpus else []
    said += [f"Tables: {line(role.tables)}"] if role.tables else []
    said += ["No worker of it is up right now"] if is_away else []
    return f"- {role.name} (tags: {', '.join(role.tags)}): {'. '.join(part.rstrip('.') for part in said)}."


def _repair(brief: PlanBrief, data: Boundary) -> str:
    mistakes = "\n".join(f"- {mistake}" for mistake in brief.mistakes)
    return text_of("repair", draft=data("refused plan", brief.draft), mistakes=mistakes)


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
