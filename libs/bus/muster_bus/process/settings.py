"""What the environment says, read once at the start of a process into one frozen value.

`__main__` (or `main`) reads `os.environ`; everything else gets the value, or the part of it that it needs. The one
exception is `Client.connect`, which users' programs call without settings. Children inherit the environment unread.
"""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from muster_bus.broker.access import ANYBODY, Access
from muster_protocol.errors import Invalid

DEFAULT_NATS_URL = "nats://127.0.0.1:4222"
DEFAULT_HTTP_HOST = "127.0.0.1"
DEFAULT_HTTP_PORT = 8080
DEFAULT_GRACE_SECONDS = 20.0
_SECRET = re.compile(r"\w*(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(_FILE)?", re.IGNORECASE)
_PASSWORD = re.compile(r"//[^/@\s]*?:([^/@\s]+)@")


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
    secrets: tuple[str, ...] = field(default=(), repr=False)  # values that content must not show

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
    log: LogSettings = LogSettings()
    http_host: str = DEFAULT_HTTP_HOST
    http_port: int = DEFAULT_HTTP_PORT
    health_port: int | None = None  # None: no health endpoint
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    jaeger_url: str | None = None
    trace: TraceSettings = TraceSettings()
    # The variables of a library under their own names; a key may be among them.
    model_env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def broker_url(self) -> str:
        """The broker that is named, else the local one."""
        return self.nats_url or DEFAULT_NATS_URL


def read_settings(env: Mapping[str, str]) -> Settings:
    """The settings that an environment holds; Invalid names the variable that is wrong. An empty one is not set."""
    return Settings(
        nats_url=env.get("MUSTER_NATS_URL") or None,
        access=_access(env),
        team_file=env.get("MUSTER_TEAM") or None,
        log=_log(env.get("MUSTER_LOG", "")),
        http_host=env.get("MUSTER_HTTP_HOST") or DEFAULT_HTTP_HOST,
        http_port=_port(env, "MUSTER_HTTP_PORT") or DEFAULT_HTTP_PORT,
        health_port=_port(env, "MUSTER_HEALTH_PORT"),
        grace_seconds=_seconds(env, "MUSTER_GRACE_SECONDS", DEFAULT_GRACE_SECONDS),
        jaeger_url=env.get("MUSTER_JAEGER_URL") or None,
        trace=_trace(env),
        model_env=_beginning_with("ANTHROPIC_", env),
    )


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
    has_content = text == "1"
    return TraceSettings(_beginning_with("OTEL_", env), has_content, _secrets(env) if has_content else ())


def _secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables that are named like a secret, also from files, and passwords in addresses."""
    found: list[str] = []
    for name, value in env.items():
        found += _PASSWORD.findall(value)
        if not _SECRET.fullmatch(name):
            continue
        found.append(value.strip())
        if name.upper().endswith("_FILE"):
            with suppress(OSError, UnicodeDecodeError):
                found.append(Path(value).read_text().strip())
    return tuple(secret for secret in found if secret)


def _log(text: str) -> LogSettings:
    words = text.split(",")
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


def _beginning_with(prefix: str, env: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: value for name, value in env.items() if name.startswith(prefix)})
