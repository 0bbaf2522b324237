"""What a role says of its tools that have an effect on the outside world."""

from collections.abc import Iterable, Mapping

from muster_agent.tools.tool import Effect
from muster_protocol.fields import nearest


def check_effects(effects: Mapping[str, Effect], tools: Iterable[str]) -> None:
    """Raise ValueError for a name that is none of the role's own functions."""
    own = [name for module, _, name in (tool.rpartition(":") for tool in tools) if module]
    for name in effects:
        if name not in own:
            way_out = nearest(name, own) if own else "; tools has no module:function"
            raise ValueError(f"{name!r} is no function that the role has as a tool{way_out}")
