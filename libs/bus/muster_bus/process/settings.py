"""What the environment says, read once at the start of a process into one frozen value.

`__main__` (or `main`) reads `os.environ`; everything else gets the value, or the part of it that it needs. The one
exception is `Client.connect`, which users' programs call without settings. Children inherit the environment unread.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from muster_bus.broker.access import ANYBODY, Access
from muster_bus.redact import KNOWN, MIN_SECRET, Secret
from muster_protocol.errors import Invalid

DEFAULT_NATS_URL = "nats://127.0.0.1:4222"
DEFAULT_HTTP_HOST = "127.0.0.1"
DEFAULT_HTTP_PORT = 8080
DEFAULT_GRACE_SECONDS = 20.0
_SECRET = re.compile(r"\w*(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|CREDS|SEED|TOKEN_BEDROCK)(_FILE)?", re.IGNORECASE)
MIN_CALLBACK_SECRET = 16  # characters: a shorter one can be guessed from one callback
LOG_WORDS = ("text", "json", "debug", "quiet")
_MODEL_PREFIXES = ("ANTHROPIC_", "OPENAI_")
_SECRET_FILES = frozenset({"MUSTER_NATS_CREDS", "MUSTER_NATS_NKEY"})  # files, though their names do not say so
_PASSWORD = re.compile(r"://(?:[^/@:\s]*:)?([^/@\s]+)@")  # or a token, which stands alone
_OTEL_HEADER = re.compile(r"=(?:\w+(?:\s|%20)+)?([^,\s]+)")  # `authorization=Bearer …`


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How a process logs."""

    is_json: bool = False
    level: Literal["debug", "info", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Where spans go and what may stand in them."""

    otel_env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)  # under OpenTelemetry's own names
    has_content: bool = False  # prompts, tool arguments and outputs

    @property
    def has_endpoint(self) -> bool:
        env = self.otel_env
        return bool(env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every variable that Muster reads. Its text shows no secret."""

    # None where it is not set: the command line then looks for this folder's `muster up`. May hold a password.
    nats_url: str | None = field(default=None, repr=False)
    access: Access = ANYBODY
    team_file: str | None = None
    team: str | None = None  # the name of the one that is asked
    log: LogSettings = LogSettings()
    http_host: str = DEFAULT_HTTP_HOST
    http_port: int = DEFAULT_HTTP_PORT
    health_port: int | None = None  # None: no health endpoint
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    jaeger_url: str | None = None
    editor: str = "vi"  # in which a person edits a plan
    trace: TraceSettings = TraceSettings()
    # The variables of a library under their own names; a key may be among them.
    model_env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    callback_secret: str = field(default="", repr=False)  # signs callbacks; empty: none are sent
    secrets: tuple[Secret, ...] = field(default=(), repr=False)  # what nothing that leaves the process may show

    @property
    def keys(self) -> Mapping[str, str]:
        """The secrets by the names of their variables; `…_FILE` names a file, and holds none itself."""
        return {name: secret for name, secret in reversed(self.secrets) if not name.upper().endswith("_FILE")}

    @property
    def broker_url(self) -> str:
        """The broker that is named, else the local one."""
        return self.nats_url or DEFAULT_NATS_URL


def process_settings(env: Mapping[str, str]) -> Settings:
    """The settings of this process, whose environment this is; from now on the redactor knows its secrets."""
    settings = read_settings(env)
    KNOWN.add(settings.secrets)
    return settings


def read_settings(env: Mapping[str, str]) -> Settings:
    """The settings that an environment holds; Invalid names the variable that is wrong. An empty one is not set."""
    return Settings(
        nats_url=env.get("MUSTER_NATS_URL") or None,
        access=_access(env),
        team_file=env.get("MUSTER_TEAM_FILE") or None,
        team=_team(env),
        log=_log(env.get("MUSTER_LOG", "")),
        http_host=env.get("MUSTER_HTTP_HOST") or DEFAULT_HTTP_HOST,
        http_port=_port(env, "MUSTER_HTTP_PORT") or DEFAULT_HTTP_PORT,
        health_port=_port(env, "MUSTER_HEALTH_PORT"),
        grace_seconds=_seconds(env, "MUSTER_GRACE_SECONDS", DEFAULT_GRACE_SECONDS),
        jaeger_url=env.get("MUSTER_JAEGER_URL") or None,
        editor=env.get("VISUAL") or env.get("EDITOR") or "vi",
        trace=_trace(env),
        model_env=_of_models(env),
        callback_secret=_callback_secret(env),
        secrets=_secrets(env),
    )


def _team(env: Mapping[str, str]) -> str | None:
    name = env.get("MUSTER_TEAM")
    if not name:
        return None
    from muster_protocol.subjects import is_id  # not above: pydantic would slow down `muster version`

    if not is_id(name):
        raise Invalid(f"{name!r} is not a team's name; a team file is named by MUSTER_TEAM_FILE", "MUSTER_TEAM")
    return name


def _access(env: Mapping[str, str]) -> Access:
    return Access(
        creds_file=env.get("MUSTER_NATS_CREDS") or None,
        nkey_file=env.get("MUSTER_NATS_NKEY") or None,
        ca_file=env.get("MUSTER_NATS_CA") or None,
        user_file=env.get("MUSTER_NATS_USER_FILE") or None,
        password_file=env.get("MUSTER_NATS_PASSWORD_FILE") or None,
    )


def _trace(env: Mapping[str, str]) -> TraceSettings:
    text = env.get("MUSTER_TRACE_CONTENT") or "0"
    if text not in ("0", "1"):
        raise Invalid(f"{text!r} is neither 0 nor 1", "MUSTER_TRACE_CONTENT")
    return TraceSettings(_beginning_with("OTEL_", env), has_content=text == "1")


def _secrets(env: Mapping[str, str]) -> tuple[Secret, ...]:
    """The values of all variables that are named like a secret, also from files, and passwords in addresses."""
    found: list[Secret] = []
    for name, value in env.items():
        found += secrets_in_address(name, value)
        if name.startswith("OTEL_") and name.endswith("_HEADERS"):
            found += [(name, credential) for credential in _OTEL_HEADER.findall(value)]
        elif name in _SECRET_FILES or (_SECRET.fullmatch(name) and name.upper().endswith("_FILE")):
            found += [(name, secret) for secret in _in_file(Path(value))]
        elif _SECRET.fullmatch(name):
            found.append((name, value.strip()))
    return tuple((name, secret) for name, secret in found if len(secret) >= MIN_SECRET)


def secrets_in_address(name: str, url: str) -> list[Secret]:
    """The passwords and tokens of an address, or of several, under the name of the variable that would hold it."""
    return [(name, password) for password in _PASSWORD.findall(url)]


def _in_file(path: Path) -> list[str]:
    """What a secret's file holds: all of it, and each line, since credentials stand between lines of words."""
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return []  # whoever needs it says so
    lines = [line.strip() for line in text.splitlines()]
    return [text, *(line for line in lines if " " not in line and not line.startswith(("-", "*")))]


def _callback_secret(env: Mapping[str, str]) -> str:
    name = "MUSTER_CALLBACK_SECRET" if env.get("MUSTER_CALLBACK_SECRET") else "MUSTER_CALLBACK_SECRET_FILE"
    text = env.get(name) or ""
    if text and name.endswith("_FILE"):
        try:
            text = Path(text).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"cannot be read: {type(error).__name__}", name) from None
    secret = text.strip()
    if secret and len(secret) < MIN_CALLBACK_SECRET:
        text = f"has fewer than {MIN_CALLBACK_SECRET} characters; `openssl rand -hex 32` makes a good one"
        raise Invalid(text, name)
    return secret


def _log(text: str) -> LogSettings:
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if word not in LOG_WORDS:
            from muster_protocol.fields import nearest

            raise Invalid(f"unknown word {word!r}{nearest(word, LOG_WORDS)}", "MUSTER_LOG")
    level = "debug" if "debug" in words else "warning" if "quiet" in words else "info"
    return LogSettings(is_json="json" in words, level=level)


def _port(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name)
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise Invalid(f"{text!r} is not a port from 1 to 65535", name)
    return int(text)


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise Invalid(f"{text!r} is not a number of seconds", name)
    return seconds


def names_a_secret(name: str) -> bool:
    """Whether the value of a variable of this name is kept out of all that leaves the process."""
    return _SECRET.fullmatch(name) is not None


def _of_models(env: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of the providers that Muster knows, and every key that a team file may name for another."""
    return MappingProxyType(
        {
            name: value
            for name, value in env.items()
            if name.startswith(_MODEL_PREFIXES) or (names_a_secret(name) and not name.startswith("MUSTER_"))
        }
    )


def _beginning_with(prefix: str, env: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: value for name, value in env.items() if name.startswith(prefix)})
