"""The addresses in a text. Pure."""

import re

_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}]+", re.IGNORECASE)
MAX_URL = 500  # characters; a longer one is cut


def urls(text: str) -> list[str]:
    """Each address once, without what punctuation left at its end."""
    if "://" not in text:
        return []
    return list(dict.fromkeys(_trimmed(match)[:MAX_URL] for match in _URL.findall(text)))


def same(url: str) -> str:
    """One form for addresses that differ in nothing but case of the host, a slash at the end, or a fragment."""
    host, slash, path = url.partition("://")[2].partition("#")[0].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")


def _trimmed(url: str) -> str:
    url = url.rstrip(".,;:!?*_]")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?*_]")
    return url
