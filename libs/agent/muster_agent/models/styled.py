"""A model that is always asked in one style: the effort and thinking of a role, and who reads what it writes."""

from dataclasses import replace

from muster_agent.models.port import Ask, Model, Price, Reply, Style


class Styled:
    """The same model, for one attempt of a role."""

    def __init__(self, model: Model, style: Style) -> None:
        self._model = model
        self._style = style

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def notice(self) -> str:
        return self._model.notice

    @property
    def is_llm(self) -> bool:
        return self._model.is_llm

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def price(self) -> Price | None:
        return self._model.price

    async def ask(self, ask: Ask) -> Reply:
        return await self._model.ask(replace(ask, style=self._style))
