"""The boundary of a prompt: tags around text from elsewhere, which it cannot close, since it cannot guess them."""

import json
import re
from dataclasses import dataclass, field

from muster_agent.models.port import new_mark
from muster_agent.models.prompts.text import text_of
from muster_protocol.messages import Output

_NOT_IN_A_NAME = re.compile(r"[^\w .,:;/+#()@-]")


@dataclass(frozen=True, slots=True)
class Boundary:
    """The boundaries of one prompt; called with a text from elsewhere it gives it inside of them."""

    mark: str = field(default_factory=new_mark)

    def __call__(self, source: str, content: Output) -> str:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
        return self._between("data", f' source="{_NOT_IN_A_NAME.sub("_", source)}"', text)

    def request(self, text: str) -> str:
        """What a person asks: an instruction, of which one can see where it begins and ends."""
        return self._between("request", "", text)

    @property
    def rule(self) -> str:
        """What a model is to make of what stands inside."""
        return text_of("data", mark=self.mark)

    def _between(self, kind: str, about: str, text: str) -> str:
        return f"<{kind}-{self.mark}{about}>\n{text}\n</{kind}-{self.mark}>"
