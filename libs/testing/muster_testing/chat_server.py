"""A local server that speaks OpenAI's chat API and refuses what strict servers refuse."""

from muster_agent.fake_model.canned import CannedReply, Json
from muster_agent.fake_model.chat_api import ChatServer, call, chat_refusal, completion, running_chat_server

__all__ = ["CannedReply", "ChatServer", "Json", "call", "chat_refusal", "completion", "running_chat_server"]
