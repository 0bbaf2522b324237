"""What a team file says of the web: which hosts its roles may read, and whom they ask for searches."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from muster_agent.team.networks import NetworkText
from muster_agent.team.strict import Strict
from muster_protocol.calling.addresses import ANY_HOST, host_pattern

Provider = Literal["brave", "tavily"]
KEY_NAMES: dict[Provider, str] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
SEARCH_URLS: dict[Provider, str] = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
}


def _host(text: str) -> str:
    try:
        return text if text == ANY_HOST else host_pattern(text)
    except ValueError as error:
        raise ValueError(f'{error}, or "*" for every public host') from None


def _key_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*_(KEY|TOKEN|SECRET)", text, re.ASCII):  # so named, its value is never shown
        raise ValueError(f"{text[:60]!r} is not the name of a variable that ends in _KEY, _TOKEN or _SECRET")
    return text


def _contact(text: str) -> str:
    if not text.isascii() or not text.isprintable() or any(sign in text for sign in " ()"):
        raise ValueError("is an address such as https://example.org/bot or bot@example.org")
    return text


def _service(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("https", "http") and bool(parts.hostname) and not parts.username and not parts.query
    except ValueError:
        is_url = False
    if not is_url or not text.isascii():
        raise ValueError("is no address such as https://api.example.org/search")
    return text


class SearchSpec(Strict):
    """Who is asked by `web_search`. The key stays in the environment: `NAME`, or the file of `NAME_FILE`."""

    provider: Provider
    key_env: Annotated[str, AfterValidator(_key_name)] = ""  # the provider's own name for it if it is empty
    url: Annotated[str, AfterValidator(_service)] = ""  # of a gateway; it may be anywhere, since the team names it
    results: int = Field(default=5, ge=1, le=20)

    @property
    def key_name(self) -> str:
        return self.key_env or KEY_NAMES[self.provider]

    @property
    def address(self) -> str:
        return self.url or SEARCH_URLS[self.provider]


class WebSpec(Strict):
    """Which pages `scrape_page` may read, and how `web_search` asks."""

    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    http: bool = False  # without TLS, for development
    private: tuple[NetworkText, ...] = ()  # networks that may be called besides the public ones
    contact: Annotated[str, AfterValidator(_contact)] = ""  # told to every site that is read
    search: SearchSpec | None = None
