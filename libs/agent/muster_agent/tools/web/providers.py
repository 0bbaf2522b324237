"""How the providers of searches are asked, and what they reply, as their public documentation has it. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

from muster_agent.team.web import Provider
from muster_agent.tools.web.readable import plain

MAX_SNIPPET = 1000  # characters of what a result says
MAX_QUERY = 400  # characters: what Brave takes, and Tavily advises


class Question(NamedTuple):
    """One HTTP request, without the address."""

    method: str
    query: str  # of the URL
    headers: Mapping[str, str]
    body: bytes = b""


class SearchFailed(ValueError):
    """The provider refuses a search; the text says why and what to do."""


def question(provider: Provider, text: str, results: int, key: str) -> Question:
    """How the provider is asked."""
    match provider:
        case "brave":
            asked = {"q": text, "count": results, "text_decorations": "false", "result_filter": "web"}
            return Question("GET", urlencode(asked), {"Accept": "application/json", "X-Subscription-Token": key})
        case "tavily":
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            said = {"query": text, "max_results": results, "search_depth": "basic"}
            return Question("POST", "", headers, json.dumps(said).encode())


def results_of(provider: Provider, status: int, body: bytes) -> str:
    """The results as text, each with its address; SearchFailed where the provider says no."""
    reply = _object(_json(body))
    if status != 200:
        raise SearchFailed(f"{provider} {_refusal(status)}{_detail(reply)}")
    match provider:
        case "brave":
            found = _list(_object(reply.get("web")).get("results"))
            listed = [_result(one, "description", _text(one, "age")) for one in found]
        case "tavily":
            listed = [_result(one, "content", "") for one in _list(reply.get("results"))]
    numbered = [f"{number}. {text}" for number, text in enumerate((text for text in listed if text), 1)]
    return "\n\n".join(numbered) or "nothing was found; try other words"


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"does not take the key (status {status}); a person has to look at it, do without a search"
    if status == 429:
        return "gets too many searches (status 429); use what is known, or try again later"
    if status in (402, 432, 433):
        return f"says that the plan is used up (status {status}); a person has to look at it, do without a search"
    if status >= 500:
        return f"fails (status {status}); try again later"
    return f"refuses the search (status {status}); try other words"


def _detail(reply: Mapping[str, Any]) -> str:
    """What it says of the reason: Brave under `error`, Tavily under `detail`."""
    said = _object(reply.get("error")).get("detail") or _object(reply.get("detail")).get("error") or reply.get("detail")
    return f": {plain(said[:300])}" if isinstance(said, str) and said else ""


def _result(one: Mapping[str, Any], says: str, age: str) -> str:
    title, url, text = _text(one, "title"), _text(one, "url"), _text(one, says)
    if not url.lower().startswith(("http://", "https://")):
        return ""
    title = plain(title[:MAX_SNIPPET]) or url
    first = f"{title} ({age})" if age else title
    return "\n".join(part for part in (first, url[:2048], plain(text[: 2 * MAX_SNIPPET])[:MAX_SNIPPET]) if part)


def _text(one: Mapping[str, Any], name: str) -> str:
    value = one.get(name)
    return value if isinstance(value, str) else ""


def _json(body: bytes) -> object:
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Mapping[str, Any]]:
    return [_object(one) for one in cast("Sequence[object]", value)] if isinstance(value, list) else []
