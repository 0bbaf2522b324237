"""The tool that searches the web by a provider of the team's choice."""

import ssl
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from muster_agent.calling.wire import exchange, message
from muster_agent.functions import call
from muster_agent.models.keys import key_in
from muster_agent.team.web import SearchSpec, WebSpec
from muster_agent.tools.tool import Tool, tool_of
from muster_agent.tools.web.bodies import read_body
from muster_agent.tools.web.fetch import WHOLE_SECONDS, agent, look_up
from muster_agent.tools.web.providers import MAX_QUERY, SearchFailed, question, results_of
from muster_protocol.calling.addresses import target_of

_ABOUT = "Search the web; returns results with title, address and a few words. Read a page before you rely on it."


def web_search_tool(web: WebSpec, search: SearchSpec, keys: Mapping[str, str]) -> Tool:
    """The tool; `keys` are the variables of the process that hold a key, or name a file with one."""

    async def web_search(
        query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="a few words to look for")],
    ) -> str:
        key = key_in(keys, search.key_name)
        if not key:
            raise SearchFailed(f"there is no key for {search.provider}: {search.key_name} is not set; do without it")
        return await ask(query, key, web, search)

    return tool_of(web_search, _ABOUT)


async def ask(query: str, key: str, web: WebSpec, search: SearchSpec) -> str:
    """The results of one search. The address is the team's own, so it may be anywhere; no redirect gets the key."""
    asked = question(search.provider, query, search.results, key)
    url = f"{search.address}?{asked.query}" if asked.query else search.address
    target = target_of(url, (str(urlsplit(url).hostname),), has_http=True, section="web", field="web.search.url")
    sent = message(asked.method, target, {**agent(web), **asked.headers, "Accept-Encoding": "gzip"}, asked.body)
    addresses, tls = await look_up(target), await call(ssl.create_default_context)
    async with exchange(target, addresses, sent, tls, WHOLE_SECONDS) as (head, reader):
        body, is_cut = await read_body(head, reader)
    if is_cut:
        raise SearchFailed(f"{search.provider} replies with more than {len(body):,} bytes; try other words")
    return results_of(search.provider, head.status, body)
