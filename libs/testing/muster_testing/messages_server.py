"""A local server that speaks the Messages API and refuses what the real one refuses; `muster fake-model` is it, too."""

from muster_agent.fake_model.canned import CannedReply, Json
from muster_agent.fake_model.messages_api import (
    MessagesServer,
    message,
    refusal,
    running_messages_server,
    text,
    thinking,
    tool_use,
)

__all__ = [
    "CannedReply",
    "Json",
    "MessagesServer",
    "message",
    "refusal",
    "running_messages_server",
    "text",
    "thinking",
    "tool_use",
]
