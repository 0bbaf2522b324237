"""Where the key of a provider is: in a variable, or in the file that a variable or the team file names."""

from collections.abc import Mapping
from pathlib import Path

from muster_agent.team.providers import ProviderSpec
from muster_bus.redact import KNOWN
from muster_protocol.errors import Misconfigured

USUAL: Mapping[str, str] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
    "foundry": "ANTHROPIC_FOUNDRY_API_KEY",
}
ELSEWHERE = ("bedrock", "vertex", "mock")  # their packages find the credentials of the machine, or none are needed


def key_of(spec: ProviderSpec, env: Mapping[str, str]) -> str:
    """The key; empty if there is none. The usual one is never sent to an address of one's own."""
    if spec.api_key_file is not None:
        return _in_file(spec.api_key_file, "api_key_file")
    name = variable_of(spec)
    return key_in(env, name) if name else ""


def variable_of(spec: ProviderSpec) -> str:
    """The variable that holds the key; empty: none does."""
    return spec.api_key_env or (USUAL.get(spec.kind, "") if spec.base_url is None else "")


def is_needed(spec: ProviderSpec) -> bool:
    """Whether nothing can be asked without a key."""
    return spec.kind not in ELSEWHERE and bool(spec.api_key_file or variable_of(spec))


def key_in(env: Mapping[str, str], name: str) -> str:
    """The key in a variable, or in the file that the variable with `_FILE` names; empty if there is none."""
    if key := env.get(name, "").strip():
        return key
    path = env.get(f"{name}_FILE", "")
    return _in_file(Path(path), f"{name}_FILE") if path else ""


def _in_file(path: Path, where: str) -> str:
    try:
        key = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it holds no text"
        raise Misconfigured(f"{where}: cannot read {path}: {why}") from None
    if not key:
        raise Misconfigured(f"{where}: {path} is empty")
    KNOWN.add([(path.name, key)])
    return key
