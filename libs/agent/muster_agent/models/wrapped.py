"""A model around another one: it says of itself what the other says, and does its own when it is asked."""

from muster_agent.models.port import Model, Price


class Wrapped:
    """The base of such models; each adds `ask`."""

    def __init__(self, model: Model) -> None:
        self._model = model

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
