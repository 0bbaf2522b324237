"""What a role did that was tried alone, as lines for a person."""

import json
from collections.abc import Iterator

from muster_agent.models.port import ToolOutput, as_text
from muster_agent.models.prompts import prompt
from muster_agent.team.schema import ModelRole
from muster_cli.trying.document import tools_of, turns_of
from muster_cli.view.plain import duration
from muster_protocol.messages import Usage
from muster_worker.trying.trial import Asked, Trial, Trying

WIDTH = 80


def beginning(trying: Trying) -> str:
    """Who is tried, and what a person should know about its model."""
    role = trying.role
    kind = f"a role with the model {role.model}" if isinstance(role, ModelRole) else f"the function {role.run}"
    return "; ".join([f"{role.name} is {kind}", *trying.executor.notice])


def lines_of(trial: Trial) -> Iterator[str]:
    """Prompt, turns and output; of a function only what came of it."""
    if trial.asked:
        system, user = prompt(trial.asked[0].ask)
        yield from (heading("system"), system, heading("user"), user)
        yield heading(f"tools: {', '.join(tool.name for tool in tools_of(trial)) or 'none'}")
    for asked, outputs in turns_of(trial):
        yield from _turn(asked, outputs)
    for task in trial.outcome.tasks:
        yield f"adds the task {task.id} for {task.tag}: {task.description}"
    outcome = trial.outcome
    about = [duration(trial.seconds), *cost(outcome.usage)]
    if outcome.error is None:
        yield heading(" · ".join(["output", *about]))
        yield as_text(outcome.output)
        return
    yield heading(" · ".join([f"failed ({outcome.error.error_class})", *about]))
    yield outcome.error.message
    if outcome.error.stack:
        yield outcome.error.stack.rstrip()


def cost(usage: Usage) -> list[str]:
    """What model calls cost; nothing where there were none."""
    if not usage.model_calls and not usage.tokens:
        return []
    calls = f"{usage.model_calls} call{'' if usage.model_calls == 1 else 's'} of the model"
    return [calls, f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens", f"{usage.usd:.4f} USD"]


def heading(text: str) -> str:
    return f"── {text} ".ljust(WIDTH, "─")


def _turn(asked: Asked, outputs: tuple[ToolOutput, ...]) -> Iterator[str]:
    """One call of the model; one that failed and was tried again is the same turn."""
    used = asked.reply.usage if asked.reply else Usage()
    tokens = [f"{used.input_tokens:,} + {used.output_tokens:,} tokens"] if used.tokens else []
    number = f"turn {len(asked.ask.transcript) + 1}"
    yield heading(" · ".join([number, asked.model, duration(asked.seconds), *tokens]))
    if asked.reply is None:
        yield f"✗ {asked.error}"
        return
    if asked.reply.text and asked.reply.tool_calls:  # the text of the last turn is the output
        yield asked.reply.text
    said = {output.call_id: output for output in outputs}
    for call in asked.reply.tool_calls:
        yield f"→ {call.name} {json.dumps(dict(call.arguments), ensure_ascii=False, default=str)}"
        if output := said.get(call.id):
            yield f"{'✗' if output.is_error else '←'} {output.text}"
    if not asked.reply.tool_calls:
        yield "its answer, which is the output"
