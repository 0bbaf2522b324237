"""Data in a prompt: text from elsewhere, in tags that it cannot close."""

import json

from muster_agent.models.prompts.text import text_of
from muster_protocol.messages import Output


def data(source: str, content: Output) -> str:
    """Text from elsewhere, in tags that it cannot close."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return f'<data source="{_safe(source)}">\n{_safe(text)}\n</data>'


def data_rule() -> str:
    """What a model is to make of such text."""
    return text_of("data")


def _safe(text: str) -> str:
    return text.replace("<data", "&lt;data").replace("</data", "&lt;/data")
