"""The environment of a process that runs functions: what every program needs, and what the team file names."""

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

USUAL = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)


def environment_for(named: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """Of an environment what such a process gets; what is not set there it does not get either."""
    wanted = USUAL | set(named)
    return {name: value for name, value in env.items() if name in wanted or name.startswith("LC_")}


def own_environment() -> Mapping[str, str]:
    """The environment of this process, as it is now."""
    return MappingProxyType(dict(os.environ))
