"""Chooses the model that a name in the team file stands for, from the keys in a given environment."""

from collections.abc import Mapping
from pathlib import Path

from muster_agent.errors import KeyRefused
from muster_agent.models.port import Model, Price
from muster_protocol.errors import Invalid, Misconfigured
from muster_protocol.fields import nearest

DEFAULT_CLAUDE = "claude-sonnet-5-5"  # what `auto` means when there is a key
KNOWN_MODELS = ("auto", "offline", "claude-…")


def choose_model(
    name: str, env: Mapping[str, str], prices: Mapping[str, Price] | None = None, offline_seconds: float = 0.0
) -> Model:
    """The model for `auto`, `offline` or a Claude name. Without a key `auto` is the offline model, with a notice."""
    key = api_key(env)
    match name:
        case "offline":
            return _offline(offline_seconds, "the offline model plans and works by rules; it is not an LLM")
        case "auto" if not key:
            return _offline(
                offline_seconds,
                "no ANTHROPIC_API_KEY: the offline model plans and works by rules; it is not an LLM",
            )
        case "auto":
            return _claude(DEFAULT_CLAUDE, key, env, prices or {})
        case _:
            try:
                check_model_name(name)
            except ValueError as error:
                raise Invalid(str(error), "model") from None
            if not key:
                raise KeyRefused(f"model {name} needs ANTHROPIC_API_KEY (or ANTHROPIC_API_KEY_FILE); or use offline")
            return _claude(name, key, env, prices or {})


def provider_of(name: str, env: Mapping[str, str]) -> str:
    """Whose service the model of this name asks; empty: nobody's."""
    if name.startswith("claude-") or (name == "auto" and api_key(env)):
        return provider_at(env.get("ANTHROPIC_BASE_URL") or None)
    return ""


def provider_at(base_url: str | None) -> str:
    """The name of a provider: what is behind an address of one's own may be away when Anthropic is not."""
    return "anthropic" if base_url is None else "anthropic-base-url"


def check_model_name(name: str) -> str:
    """The name if `choose_model` knows what it stands for."""
    if name not in ("auto", "offline") and not name.startswith("claude-"):
        raise ValueError(f"unknown model {name!r}{nearest(name, KNOWN_MODELS)}")
    return name


def api_key(env: Mapping[str, str]) -> str:
    """The key from the environment, or from the file that it names; empty if there is none."""
    if key := env.get("ANTHROPIC_API_KEY", "").strip():
        return key
    path = env.get("ANTHROPIC_API_KEY_FILE", "")
    if not path:
        return ""
    try:
        key = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it holds no text"
        raise Misconfigured(f"ANTHROPIC_API_KEY_FILE: cannot read {path}: {why}") from None
    if not key:
        raise Misconfigured(f"ANTHROPIC_API_KEY_FILE: {path} is empty")
    return key


def _offline(seconds: float, notice: str) -> Model:
    from muster_agent.models.offline.model import Offline

    return Offline(seconds_per_answer=seconds, notice=notice)


def _claude(name: str, key: str, env: Mapping[str, str], prices: Mapping[str, Price]) -> Model:
    # Imported here: anthropic takes two seconds and 70 MB, which a process without a key should not pay for.
    try:
        from muster_agent.models.claude import Claude
    except ImportError as error:
        raise Misconfigured(f"model {name} needs the package anthropic: pip install 'muster-agent[claude]'") from error
    return Claude(name, key, base_url=env.get("ANTHROPIC_BASE_URL") or None, price=prices.get(name))
