"""A model that is always asked in one style: the effort and thinking of a role, and who reads what it writes."""

from dataclasses import replace

from muster_agent.models.port import Ask, Model, Reply, Style
from muster_agent.models.wrapped import Wrapped


class Styled(Wrapped):
    """The same model, for one attempt of a role."""

    def __init__(self, model: Model, style: Style) -> None:
        super().__init__(model)
        self._style = style

    async def ask(self, ask: Ask) -> Reply:
        return await self._model.ask(replace(ask, style=self._style))
