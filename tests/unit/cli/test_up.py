"""Where `muster up` says that it can be reached."""

import pytest

from muster_cli.commands.up import reachable


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("fd00::7", "http://[fd00::7]:8080"),
        ("box.lan", "http://box.lan:8080"),
    ],
)
def test_every_host_to_listen_on_has_an_address_to_be_reached_at(host: str, url: str):
    assert reachable(host, 8080) == url
