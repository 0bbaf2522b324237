"""How the broker is reached, who we are to it, and in plain words why it cannot be used; no secret is ever shown."""

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from muster_protocol.errors import Invalid

SCHEMES = ("nats", "tls", "ws", "wss")
CREDENTIALS = "MUSTER_NATS_CREDS, MUSTER_NATS_NKEY, or MUSTER_NATS_USER_FILE and MUSTER_NATS_PASSWORD_FILE"
ENDS_BADLY = (ConnectionResetError, BrokenPipeError)  # which follows a refusal, and says less
_REFUSALS = ("authorization violation", "authentication", "account", "user jwt")  # in the broker's error lines


@dataclass(frozen=True, slots=True)
class Access:
    """The files that say who we are to the broker, and whose certificates we believe."""

    creds_file: str | None = None
    nkey_file: str | None = None
    user_file: str | None = None
    password_file: str | None = None
    ca_file: str | None = None

    def options(self) -> dict[str, Any]:
        """As nats-py takes them; Invalid names the variable whose file cannot be used."""
        options: dict[str, Any] = {}
        for name, option, path in (
            ("MUSTER_NATS_CREDS", "user_credentials", self.creds_file),
            ("MUSTER_NATS_NKEY", "nkeys_seed", self.nkey_file),
        ):
            if path is not None:
                _check_held(_content(path, name), path, name)
                options[option] = path  # nats-py reads it again for each connection
        if self.user_file is not None:
            options["user"] = _content(self.user_file, "MUSTER_NATS_USER_FILE")
        if self.password_file is not None:
            options["password"] = _content(self.password_file, "MUSTER_NATS_PASSWORD_FILE")
        if self.ca_file is not None:
            options["tls"] = _trust(self.ca_file)
        return options


ANYBODY = Access()


def check_address(url: str) -> None:
    """Refuse what is no address, instead of saying that nobody answers there."""
    for one in url.split(","):
        try:
            parts = urlsplit(one.strip() if "://" in one else f"nats://{one.strip()}")
            is_address = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise Invalid(
                f"{shown(one.strip())!r} is no address of a NATS server, such as nats://127.0.0.1:4222",
                "MUSTER_NATS_URL",
            )


def shown(url: str) -> str:
    """An address, or several, for people to read: without user and password."""
    return ",".join(_without_user(one) for one in url.split(","))


def _without_user(url: str) -> str:
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def is_refusal(error: BaseException | None) -> bool:
    """Whether trying again is of no use before somebody changes credentials or certificates."""
    return _is_untrusted(error) or _refused_credentials(error) or _has_no_tls(error)


def why_not(url: str, error: BaseException | None) -> str:
    """Why the broker cannot be used, and the way out."""
    where = shown(url)
    if _refused_credentials(error):
        return f"the broker at {where} refuses these credentials: {_plain(error)}; set {CREDENTIALS}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate of the broker at {where} is not trusted: {error.verify_message}; "
            "set MUSTER_NATS_CA to the file of the authority that signed it"
        )
    if _has_no_tls(error):
        return f"the broker at {where} has no TLS, which MUSTER_NATS_CA or tls:// asks for; nothing was sent to it"
    return f"no NATS server answers at {where} ({_plain(error)}); start one with `muster up`, or set MUSTER_NATS_URL"


def _is_untrusted(error: BaseException | None) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError)


def _has_no_tls(error: BaseException | None) -> bool:
    return "nats: secure connection not available" in str(error)


def _refused_credentials(error: BaseException | None) -> bool:
    text = str(error).lower()
    return "nats: " in text and any(words in text for words in _REFUSALS)


def _plain(error: BaseException | None) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ssl.SSLError):
        return error.strerror.lower()
    text = "" if error is None else str(error).removeprefix("nats: ").strip("'").lower()
    return text or "timeout"


def _content(path: str, name: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", name) from None


def _check_held(content: str, path: str, name: str) -> None:
    """In a file that holds something else nats-py would look for the credentials for ever."""
    if name == "MUSTER_NATS_CREDS":
        if "BEGIN NATS USER JWT" not in content or "BEGIN USER NKEY SEED" not in content:
            raise Invalid(f"{path} holds no credentials, which `nsc generate creds` writes", name)
    elif not content.startswith("SU"):
        raise Invalid(f"{path} holds no seed of a user, which begins with SU", name)


def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError) as error:
        raise Invalid(f"cannot use {ca_file}: {error.strerror or error}", "MUSTER_NATS_CA") from None
