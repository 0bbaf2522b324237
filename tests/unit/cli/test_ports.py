"""The address that `muster up` prints."""

import pytest

from muster_cli.local.ports import http_address


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
def test_a_host_to_listen_on_becomes_the_address_at_which_it_is_reached(host: str, url: str):
    assert http_address(host, 8080) == url
