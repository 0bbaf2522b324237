"""Which port `muster up` takes, and the address at which it is reached."""

from muster_bus.broker.embedded import is_free
from muster_protocol.errors import Misconfigured

PORTS_TRIED = 50
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # every interface includes this one


def http_address(host: str, port: int) -> str:
    """The address at which this machine reaches what listens on a host."""
    host = LOOPBACK.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def free_port_near(given: int | None, usual: int, option: str, host: str = "127.0.0.1") -> int:
    """The port that was asked for, or an error; else the usual one, or the next that is free."""
    if given is not None:
        if not is_free(given, host):
            raise Misconfigured(
                f"port {given} is in use; name another with {option}, or none to take the next free one"
            )
        return given
    for port in range(usual, usual + PORTS_TRIED):
        if is_free(port, host):
            return port
    raise Misconfigured(f"no port from {usual} to {usual + PORTS_TRIED - 1} is free; name one with {option}")
