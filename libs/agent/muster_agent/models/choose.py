"""Chooses the model that a name in the team file stands for, from its providers and the keys in an environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muster_agent.errors import KeyRefused
from muster_agent.models.keys import is_needed, key_in, key_of, variable_of
from muster_agent.models.port import Model, Price
from muster_agent.team.providers import BUILT_IN, ProviderSpec
from muster_protocol.errors import Invalid, Misconfigured
from muster_protocol.fields import nearest

DEFAULT_CLAUDE = "claude-sonnet-5-5"  # what `auto` means when there is a key
KNOWN_MODELS = ("auto", "offline", "claude-…")
Specs = Mapping[str, ProviderSpec]
_NAME = re.compile(r"[a-z0-9-]{1,32}/\S+")
_EXTRAS = {"openai": "openai", "bedrock": "bedrock", "vertex": "vertex"}
_BASE_URLS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


@dataclass(frozen=True, slots=True)
class Source:
    """Who answers for a model: the provider by the name that its breaker has, where it is, and its key."""

    provider: str
    spec: ProviderSpec
    key: str = ""


def choose_model(
    name: str,
    env: Mapping[str, str],
    prices: Mapping[str, Price] | None = None,
    offline_seconds: float = 0.0,
    providers: Specs | None = None,
) -> Model:
    """The model for `auto`, `offline`, a Claude name or `provider/model`.

    Without a key `auto` is the offline model, with a notice.
    """
    try:
        check_model_name(name)
    except ValueError as error:
        raise Invalid(str(error), "model") from None
    if name == "offline":
        return _offline(offline_seconds, "the offline model plans and works by rules; it is not an LLM")
    source = source_of(_parts(name)[0], env, providers or {})
    if not source.key and is_needed(source.spec):
        if name == "auto":
            reason = "no ANTHROPIC_API_KEY: the offline model plans and works by rules; it is not an LLM"
            return _offline(offline_seconds, reason)
        raise KeyRefused(f"model {name} needs {_where(source.spec)}; or use offline")
    model = _parts(name)[1]
    found = prices or {}
    return _asking(model, source, found.get(name) or found.get(model))


def source_of(provider: str, env: Mapping[str, str], providers: Specs) -> Source:
    """The provider of this name: the team's own, or one that every team knows."""
    if (own := providers.get(provider)) is not None:
        return Source(provider, own, key_of(own, env))
    usual = BUILT_IN.get(provider)
    if usual is None:
        known = sorted({*providers, *BUILT_IN})
        raise Invalid(f"no provider {provider!r}{nearest(provider, known)}; add it under providers", "model")
    base_url = env.get(_BASE_URLS[provider]) or None
    spec = usual.model_copy(update={"base_url": base_url})
    return Source(_at(provider, base_url), spec, key_of(spec, env))


def provider_of(name: str, env: Mapping[str, str], providers: Specs | None = None) -> str:
    """Whose service the model of this name asks; empty: nobody's."""
    provider, _ = _parts(name)
    own = (providers or {}).get(provider)
    if name == "offline" or provider == "mock" or (own is not None and own.kind == "mock"):
        return ""
    if name == "auto" and not has_key(name, env, providers):
        return ""
    return provider if own is not None else _at(provider, env.get(_BASE_URLS.get(provider, "")) or None)


def has_key(name: str, env: Mapping[str, str], providers: Specs | None = None) -> bool:
    """Whether a model can be asked, as far as its key says."""
    if name == "offline":
        return True
    source = source_of(_parts(name)[0], env, providers or {})
    return bool(source.key) or not is_needed(source.spec)


def provider_at(base_url: str | None) -> str:
    """The name of Anthropic's own service, or of what is behind an address."""
    return _at("anthropic", base_url)


def provider_in(name: str) -> str:
    """The provider that a model's name begins with; empty if it needs none."""
    return "" if name in ("auto", "offline") else _parts(name)[0]


def check_model_name(name: str) -> str:
    """The name if `choose_model` knows what it may stand for."""
    if name not in ("auto", "offline", "mock") and not name.startswith("claude-") and not _NAME.fullmatch(name):
        raise ValueError(f"unknown model {name!r}{nearest(name, KNOWN_MODELS)}, or provider/model")
    return name


def api_key(env: Mapping[str, str]) -> str:
    """The key for Anthropic from the environment, or from the file that it names; empty if there is none."""
    return key_in(env, "ANTHROPIC_API_KEY")


def _parts(name: str) -> tuple[str, str]:
    """The provider and its own name for the model: `a/b/c` is the model `b/c` of the provider a."""
    if name == "auto":
        return "anthropic", DEFAULT_CLAUDE
    provider, slash, model = name.partition("/")
    return (provider, model) if slash else ("anthropic" if name.startswith("claude-") else name, name)


def _at(provider: str, base_url: str | None) -> str:
    """What is behind an address of one's own may be away when the provider itself is not."""
    return provider if base_url is None else f"{provider}-base-url"


def _where(spec: ProviderSpec) -> str:
    name = variable_of(spec)
    return f"{name} (or {name}_FILE)" if name else f"a key in {spec.api_key_file}"


def _offline(seconds: float, notice: str) -> Model:
    from muster_agent.models.offline.model import Offline

    return Offline(seconds_per_answer=seconds, notice=notice)


def _asking(name: str, source: Source, price: Price | None) -> Model:
    # Imported here: each package takes a second or two and 70 MB, which a process that asks no such model saves.
    if source.spec.kind == "mock":
        from muster_agent.models.mock import mock

        return mock(f"{source.provider}/{name}" if name != source.provider else name, source.spec)
    try:
        if source.spec.kind == "openai":
            from muster_agent.models.openai import OpenAI

            return OpenAI(name, source, price)
        from muster_agent.models.claude import Claude

        return Claude.behind(name, source, price)
    except ImportError as error:
        way_out = f"pip install 'muster-agent[{_EXTRAS.get(source.spec.kind, 'claude')}]'"
        raise Misconfigured(f"model {name} needs the package {error.name}: {way_out}") from error
