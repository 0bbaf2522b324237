"""Where callbacks may go, how they are signed and when they are tried again."""

import ipaddress
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_client.callbacks import verify
from muster_protocol.calling.addresses import host_pattern, is_named, is_public, may_be_called, target_of
from muster_protocol.calling.signing import REQUEST_ID, SIGNATURE, TIMESTAMP, is_signed, signature
from muster_protocol.calling.tries import MOST_SECONDS, Delivered, GaveUp, TryLater, next_try, verdict
from muster_protocol.errors import Invalid

HOSTS = ("example.org", "*.hooks.example", "203.0.114.7")

NOT_PUBLIC = """
0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 172.31.255.255
192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1
255.255.255.255 :: ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1
2001::1 2001:db8::1 2002:7f00:1::1 fc00::1 fd12::1 fe80::1 fe80::1%eth0 2606:4700::1111%1 fec0::1 ff02::1
3fff::1 5f00::1 nonsense 127.1
"""
PUBLIC = """
1.1.1.1 8.8.8.8 100.63.255.255 172.32.0.1 203.0.114.7 223.255.255.1 2606:4700::1111 2a00:1450::1
"""


@pytest.mark.parametrize("address", NOT_PUBLIC.split())
def test_what_is_not_on_the_internet_for_everybody_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_a_public_address_is_global_and_no_multicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not any((address.is_multicast, address.is_private, address.is_reserved, address.is_loopback))


@given(st.ip_addresses(v=4))
def test_an_address_in_another_notation_is_not_public(address: ipaddress.IPv4Address) -> None:
    assert not is_public(f"::ffff:{address}")
    assert not is_public(f"64:ff9b::{address}")


def test_a_team_may_allow_a_network_besides() -> None:
    private = (ipaddress.ip_network("127.0.0.1/32"),)

    assert may_be_called("127.0.0.1", private)
    assert may_be_called("1.1.1.1", private)
    assert not may_be_called("127.0.0.2", private)
    assert not may_be_called("::ffff:127.0.0.1", private)
    assert not may_be_called("localhost", private)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/in?token=a", ("example.org", 443, "example.org", "/in?token=a")),
        ("https://EXAMPLE.org", ("example.org", 443, "EXAMPLE.org", "/")),
        ("https://a.b.hooks.example:8443/x#part", ("a.b.hooks.example", 8443, "a.b.hooks.example:8443", "/x")),
        ("https://example.org?a=1", ("example.org", 443, "example.org", "/?a=1")),
        ("https://203.0.114.7/", ("203.0.114.7", 443, "203.0.114.7", "/")),
    ],
)
def test_a_url_is_taken_apart_once(url: str, expected: tuple[str, int, str, str]) -> None:
    target = target_of(url, HOSTS)

    assert target.is_https
    assert target[1:] == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.org/", "https://"),
        ("ftp://example.org/", "https://"),
        ("//example.org/", "https://"),
        ("example.org", "https://"),
        ("https://ada:secret@example.org/", "user"),
        ("https://example.org@evil.test/", "user"),
        ("https://evil.test/?x=example.org", "evil.test"),
        ("https://example.org.evil.test/", "example.org.evil.test"),
        ("https://notexample.org/", "notexample.org"),
        ("https://hooks.example/", "hooks.example"),
        ("https://example.org./", "example.org."),
        ("https:///path", "does not call"),
        ("https:example.org", "https://"),
        ("https://example.org:22/", "port 22"),
        ("https://example.org:99999/", "port 99999"),
        ("https://[::1/", "does not call"),
        ("https://[::1]/", "does not call '::1'"),
        ("https://example.org:x/", "does not call 'example.org:x'"),
        ("https://example.org:/", "does not call 'example.org:'"),
        ("https://example.org:443:80/", "does not call"),
        ("https://example.org/a b", "plain characters"),
        ("https://example.org\\@evil.test/", "plain characters"),
        ("https://exa\tmple.org/", "plain characters"),
        ("https://example.org/\r\nHost: evil.test", "plain characters"),
        ("https://exämple.org/", "plain characters"),
        ("https://example.org/" + "a" * 2048, "plain characters"),
    ],
)
def test_any_other_url_is_refused_without_its_path(url: str, reason: str) -> None:
    with pytest.raises(Invalid, match=r"^callback_url: ") as refused:
        target_of(url, HOSTS)

    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)


def test_http_is_for_teams_that_say_so() -> None:
    target = target_of("http://example.org:8080/in", HOSTS, has_http=True)

    assert (target.is_https, target.port) == (False, 8080)
    assert target_of("http://example.org/", HOSTS, has_http=True).port == 80


@given(st.text(), st.lists(st.sampled_from(HOSTS)))
def test_no_text_is_called_that_the_team_does_not_name(url: str, hosts: list[str]) -> None:
    try:
        target = target_of(url, hosts, has_http=True)
    except Invalid:
        return
    assert is_named(target.host, hosts)


@pytest.mark.parametrize(
    "text", ["*", "*.*.org", "a.*.org", "https://example.org", "example.org:443", "", "*.1.2.3.4", "a b"]
)
def test_a_host_in_a_team_file_is_a_name_or_an_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as example\.org"):
        host_pattern(text)


def test_a_star_stands_for_names_and_never_for_addresses() -> None:
    assert host_pattern("*.Example.ORG") == "*.example.org"
    assert host_pattern("::1") == "::1"
    assert not is_named("1.2.3.4", ("*.3.4",))


@given(st.text(min_size=1), st.integers(0, 10**11), st.binary())
def test_what_was_signed_is_known_and_nothing_else(secret: str, stamp: int, body: bytes) -> None:
    secret = secret.encode(errors="replace").decode()
    headers = {"muster-timestamp": str(stamp), "MUSTER-SIGNATURE": signature(secret, stamp, body)}

    assert is_signed(secret, headers, body, now=stamp + 300, tolerance_seconds=300)
    assert not is_signed(secret, headers, body, now=stamp + 301, tolerance_seconds=300)
    assert not is_signed(secret, headers, body, now=stamp - 301, tolerance_seconds=300)
    assert not is_signed(secret, headers, body + b" ", now=stamp, tolerance_seconds=300)
    assert not is_signed(secret + "x", headers, body, now=stamp, tolerance_seconds=300)
    assert not is_signed(
        secret, {**headers, "muster-timestamp": str(stamp + 1)}, body, now=stamp, tolerance_seconds=300
    )


@pytest.mark.parametrize("stamp", ["", "soon", "-1", "1.5", "9" * 5000, "١"])
def test_a_callback_without_a_time_is_not_ours(stamp: str) -> None:
    assert not is_signed("secret", {TIMESTAMP: stamp, SIGNATURE: "v1=0é"}, b"", now=0, tolerance_seconds=300)


def test_the_signature_is_what_the_page_says() -> None:
    headers = {REQUEST_ID: "7f3a", TIMESTAMP: str(int(time.time()))}
    signed = {**headers, SIGNATURE: signature("a secret of ours", int(headers[TIMESTAMP]), b"{}")}

    assert signature("key", 1, b"{}") == "v1=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224"
    assert verify("a secret of ours", signed, b"{}")
    assert not verify("another secret!!", signed, b"{}")
    assert not verify("", signed, b"{}")


@pytest.mark.parametrize(
    ("status", "asked_seconds", "expected"),
    [
        (200, None, Delivered()),
        (204, None, Delivered()),
        (503, 30.0, TryLater("the receiver says 503", 30.0)),
        (429, 86400.0, TryLater("the receiver says 429", MOST_SECONDS)),
        (408, None, TryLater("the receiver says 408")),
        (404, None, GaveUp("the receiver says 404")),
    ],
)
def test_what_a_reply_means(status: int, asked_seconds: float | None, expected: object) -> None:
    assert verdict(status, asked_seconds) == expected


def test_a_redirect_is_not_followed() -> None:
    assert isinstance(verdict(302, None), GaveUp)


@given(st.integers(200, 599), st.floats(0) | st.none())
def test_every_reply_has_a_meaning_and_bounds(status: int, asked_seconds: float | None) -> None:
    found = verdict(status, asked_seconds)

    assert isinstance(found, Delivered) == (status < 300)
    if isinstance(found, TryLater):
        assert 0 <= found.seconds <= MOST_SECONDS


@given(st.text(), st.integers(0, 10**6))
def test_the_pause_doubles_up_to_a_quarter_of_an_hour(request_id: str, tries: int) -> None:
    request_id = request_id.encode(errors="replace").decode()

    assert 0.75 <= next_try(request_id, tries) <= MOST_SECONDS
    assert next_try(request_id, max(1, tries)) * 1.2 <= next_try(request_id, max(1, tries) + 1) or tries >= 10
    assert next_try(request_id, 20) == MOST_SECONDS
