"""A model for tests: it replies from a script, and keeps what it was asked."""

from collections.abc import Callable, Iterable

from muster_agent.models.port import FREE, Ask, Price, Reply

Script = Callable[[Ask], Reply | Exception]


class Scripted:
    """Replies from a list, one after the other, or from a function of the ask. An exception is raised."""

    def __init__(
        self,
        script: Iterable[Reply | Exception] | Script,
        price: Price | None = FREE,
        name: str = "scripted",
        notice: str = "",
    ) -> None:
        self.name = name
        self.notice = notice
        self.is_llm = True
        self.provider = ""
        self.price = price
        self.asked: list[Ask] = []
        self._script = script if callable(script) else None
        self._replies = iter(() if callable(script) else script)

    async def ask(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        reply = self._script(ask) if self._script else next(self._replies, None)
        if reply is None:
            raise AssertionError(f"the script ended before ask {len(self.asked)}: {ask.brief}")
        if isinstance(reply, Exception):
            raise reply
        return reply
