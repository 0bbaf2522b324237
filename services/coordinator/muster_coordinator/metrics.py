"""Numbers of results for Prometheus: how many by role, status and class of error, and what they cost. Pure.

They are counted from headers since this coordinator started. Every coordinator counts the same results, so a query
takes the largest of them, not their sum.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from muster_coordinator.header_numbers import number, real
from muster_protocol import headers as h
from muster_protocol.messages.result import ErrorClass
from muster_protocol.status_words import ResultStatus

MAX_ROLES = 200  # a label with more values is a burden to whoever stores it; what is beyond is `other`
MAX_PROVIDERS = 50
OTHER = "other"
_PROVIDER = re.compile(r"[a-z0-9-]{1,32}(?=\W)")
_CLASSES = frozenset(get_args(ErrorClass))
_STATUSES = frozenset(status.value for status in ResultStatus)


class ResultNumbers:
    """What all results came to, by role."""

    def __init__(self) -> None:
        self._roles: set[str] = set()
        self._results: Counter[tuple[str, str, str]] = Counter()  # by role, status and error class
        self._tokens: Counter[str] = Counter()
        self._usd: dict[str, float] = {}
        self._waits: Counter[str] = Counter()  # by provider

    def add(self, headers: Mapping[str, str]) -> None:
        """A result was stored."""
        role, status = self._known(headers.get(h.SENDER, "")), headers.get(h.STATUS, "")
        error_class = headers.get(h.ERROR_CLASS, "")
        if error_class and error_class not in _CLASSES:
            error_class = OTHER
        self._results[role, status if status in _STATUSES else OTHER, error_class] += 1
        if h.TOKENS in headers:
            self._tokens[role] += number(headers[h.TOKENS])
            self._usd[role] = self._usd.get(role, 0.0) + real(headers.get(h.USD, "0"))

    def add_wait(self, waits_for: str) -> None:
        """A worker said that an attempt waits for a limit, which begins with the name of its provider."""
        found = _PROVIDER.match(waits_for)
        provider = OTHER if found is None else found[0]
        self._waits[provider if provider in self._waits or len(self._waits) < MAX_PROVIDERS else OTHER] += 1

    def text(self, requests: Mapping[str, int]) -> str:
        """All numbers as Prometheus reads them, with how many requests there are of each status."""
        return "".join(f"{line}\n" for line in self._lines(requests))

    def _known(self, sender: str) -> str:
        """The role that a sender names; an owner, and a worker that gave an attempt up unread, name none."""
        role = sender.split("/", 2)[2] if sender.count("/") > 1 else ""
        if role not in self._roles:
            if len(self._roles) >= MAX_ROLES:
                return OTHER
            self._roles.add(role)
        return role

    def _lines(self, requests: Mapping[str, int]) -> Iterator[str]:
        yield "# HELP muster_requests Requests by status; of ended ones those that are remembered."
        yield "# TYPE muster_requests gauge"
        for status, count in sorted(requests.items()):
            yield f'muster_requests{{status="{status}"}} {count}'
        yield "# HELP muster_results_total Results of attempts by role, status and class of error."
        yield "# TYPE muster_results_total counter"
        for (role, status, error_class), count in sorted(self._results.items()):
            yield f'muster_results_total{{role="{role}",status="{status}",error_class="{error_class}"}} {count}'
        yield "# HELP muster_tokens_total Tokens that results say they used."
        yield "# TYPE muster_tokens_total counter"
        for role, tokens in sorted(self._tokens.items()):
            yield f'muster_tokens_total{{role="{role}"}} {tokens}'
        yield "# HELP muster_usd_total US dollars that results say they cost."
        yield "# TYPE muster_usd_total counter"
        for role, usd in sorted(self._usd.items()):
            yield f'muster_usd_total{{role="{role}"}} {usd:.6f}'
        yield "# HELP muster_limit_waits_total How often workers said that a call waits for a limit of its provider."
        yield "# TYPE muster_limit_waits_total counter"
        for provider, count in sorted(self._waits.items()):
            yield f'muster_limit_waits_total{{provider="{provider}"}} {count}'
