"""What a role did that was tried alone, as one JSON document."""

from typing import Any

from muster_agent.models.port import ToolOutput
from muster_agent.models.prompts import prompt
from muster_protocol.messages import Usage
from muster_worker.trying.trial import Asked, Trial


def document_of(trial: Trial) -> dict[str, Any]:
    outcome = trial.outcome
    system, user = prompt(trial.asked[0].ask) if trial.asked else ("", "")
    return {
        "role": trial.role.name,
        "model": trial.asked[0].model if trial.asked else None,
        "notices": list(trial.notices),
        "system": system or None,
        "user": user or None,
        "tools": [{"name": tool.name, "description": tool.description} for tool in tools_of(trial)],
        "turns": [_turn(one, outputs) for one, outputs in turns_of(trial)],
        "tool_calls": list(outcome.tool_calls),
        "progress": trial.progress,
        "adds_tasks": [task.model_dump(mode="json", exclude_defaults=True) for task in outcome.tasks],
        "status": outcome.status.value,
        "output": outcome.output,
        "error": None if outcome.error is None else outcome.error.model_dump(mode="json", by_alias=True),
        "seconds": round(trial.seconds, 4),
        "usage": usage_of(outcome.usage),
    }


def tools_of(trial: Trial) -> list[Any]:
    return list(trial.asked[0].ask.tools) if trial.asked else []


def turns_of(trial: Trial) -> list[tuple[Asked, tuple[ToolOutput, ...]]]:
    """Each call of the model with the outputs of the tools that it called: they stand in the ask that follows."""
    later = [one.ask.transcript for one in trial.asked[1:]]
    outputs = [transcript[-1].outputs if transcript else () for transcript in later]
    return list(zip(trial.asked, [*outputs, ()], strict=True)) if trial.asked else []


def usage_of(usage: Usage) -> dict[str, Any]:
    return {**usage.model_dump(mode="json"), "tokens": usage.tokens}


def _turn(asked: Asked, outputs: tuple[ToolOutput, ...]) -> dict[str, Any]:
    reply = asked.reply
    said = {output.call_id: output for output in outputs}
    calls = reply.tool_calls if reply else ()
    return {
        "turn": len(asked.ask.transcript) + 1,  # of one that failed and was tried again the same
        "text": reply.text if reply else None,
        "calls": [
            {
                "tool": call.name,
                "arguments": dict(call.arguments),
                "output": said[call.id].text if call.id in said else None,
                "is_error": said[call.id].is_error if call.id in said else None,
            }
            for call in calls
        ],
        "error": asked.error or None,
        "seconds": round(asked.seconds, 4),
        "usage": usage_of(reply.usage) if reply else None,
    }
