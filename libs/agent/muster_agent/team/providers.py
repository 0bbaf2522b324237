"""Whose models a team may ask, beside those that every team knows: where they are, and what they can do."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints, model_validator

from muster_agent.team.strict import Strict
from muster_bus.process.settings import names_a_secret

Kind = Literal["anthropic", "openai", "bedrock", "vertex", "foundry", "mock"]
OWN_NAMES = ("auto", "offline")  # what these mean is not for a team file to say
_ALWAYS = {"kind", "capabilities"}
_KEY = {"api_key_env", "api_key_file"}
_TAKEN: Mapping[Kind, set[str]] = {
    "anthropic": {*_ALWAYS, *_KEY, "base_url"},
    "openai": {*_ALWAYS, *_KEY, "base_url"},
    "bedrock": {*_ALWAYS, *_KEY, "base_url", "region"},
    "vertex": {*_ALWAYS, *_KEY, "base_url", "region", "project"},
    "foundry": {*_ALWAYS, *_KEY, "base_url", "resource"},
    "mock": {"kind", "replies", "replies_file"},
}
_NEEDED: Mapping[Kind, tuple[str, ...]] = {"bedrock": ("region",), "vertex": ("region", "project")}


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of a server; write such as http://localhost:11434/v1")
    if parts.username or parts.password:
        raise ValueError("holds a user or a password; put the key into a variable and name that as api_key_env")
    return url


def _variable(name: str) -> str:
    if not names_a_secret(name) or name.upper().endswith("_FILE"):
        raise ValueError(
            f"{name!r} is no name of a secret, so that its value might be shown; "
            "name the variable such as MY_API_KEY (…_KEY, …_TOKEN, …_SECRET)"
        )
    return name


def _name(name: str) -> str:
    if name in OWN_NAMES:
        raise ValueError(f"{name!r} is a model of Muster's own; give the provider another name")
    if not re.fullmatch(r"[a-z0-9-]{1,32}", name):
        raise ValueError(f"{name!r} cannot name a provider: small letters, digits and -, at most 32")
    return name


ProviderName = Annotated[str, AfterValidator(_name)]
Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[str, AfterValidator(_variable)]
Word = Annotated[str, StringConstraints(pattern=r"^[\w.:-]+$")]


class Capabilities(Strict):
    """What a provider's models can do; what they cannot do is not asked of them."""

    tools: bool = True
    parallel_tool_calls: bool = True
    structured_output: bool = True
    streaming: bool = True
    cache: bool = True  # of prompts, where the request has to say so: only Claude's API


class ProviderSpec(Strict):
    """One provider of models."""

    kind: Kind
    base_url: Address | None = None
    api_key_env: Variable | None = None
    api_key_file: Path | None = None
    region: Word | None = None
    project: Word | None = None
    resource: Word | None = None
    capabilities: Capabilities = Capabilities()
    replies: tuple[str | dict[str, Any], ...] = ()
    replies_file: Path | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        taken = _TAKEN[self.kind]
        if extra := sorted(self.model_fields_set - taken):
            raise ValueError(f"kind: {self.kind} does not use {extra[0]!r}; leave it out")
        if missing := [key for key in _NEEDED.get(self.kind, ()) if getattr(self, key) is None]:
            raise ValueError(f"kind: {self.kind} needs {missing[0]!r}; add it")
        if self.kind == "foundry" and (self.resource is None) == (self.base_url is None):
            raise ValueError("kind: foundry needs one of 'resource' and 'base_url'")
        if self.kind == "mock" and bool(self.replies) == (self.replies_file is not None):
            raise ValueError("kind: mock needs one of 'replies' and 'replies_file'")
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("has both 'api_key_env' and 'api_key_file'; leave one out")
        return self

    def within(self, folder: Path) -> "ProviderSpec":
        """The same, with its files found from the folder of the team file."""
        paths = {name: getattr(self, name) for name in ("api_key_file", "replies_file")}
        return self.model_copy(update={name: folder / path for name, path in paths.items() if path is not None})


Providers = dict[ProviderName, ProviderSpec]
BUILT_IN: Mapping[str, ProviderSpec] = {
    "anthropic": ProviderSpec(kind="anthropic", api_key_env="ANTHROPIC_API_KEY"),
    "openai": ProviderSpec(kind="openai", api_key_env="OPENAI_API_KEY"),
}
