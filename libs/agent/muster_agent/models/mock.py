"""`kind: mock`: a model that replies from a list in the team file, or from a file beside it, for tests and trials."""

import json
from itertools import count

from muster_agent.fake_model.script import Entry, read_script, script_of
from muster_agent.models.port import FREE, Ask, Reply, ToolCall
from muster_agent.models.prompts import prompt
from muster_agent.models.scripted import Scripted
from muster_agent.team.providers import ProviderSpec
from muster_protocol.errors import Misconfigured

NOTICE = "the mock model replies from a list; it is not an LLM"


def mock(name: str, spec: ProviderSpec) -> Scripted:
    """A model with a script, as `muster fake-model --script` has it; its replies cost nothing."""
    path = spec.replies_file
    script = script_of(spec.replies, "replies") if path is None else read_script(path, "replies_file")
    ids = count(1)

    def reply(ask: Ask) -> Reply:
        entry = script.next("\n".join(prompt(ask)))
        if entry is None:
            raise Misconfigured(f"model {name}: its replies have nothing for this prompt; add one without `when`")
        return _reply(entry, next(ids))

    return Scripted(reply, FREE, name, NOTICE)


def _reply(entry: Entry, number: int) -> Reply:
    if entry.fault is not None:
        raise Misconfigured("a fault needs a server: `muster fake-model` is one")
    words = entry.text if entry.json_value is None else json.dumps(entry.json_value, ensure_ascii=False)
    calls = (ToolCall(f"mock_{number}", entry.tool, entry.arguments),) if entry.tool else ()
    return Reply(words, calls, stop="tools" if calls else "end")
