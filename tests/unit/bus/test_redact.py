"""One redactor knows the secrets of the process; nothing else is changed."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from muster_bus.process.settings import read_settings
from muster_bus.redact import MIN_SECRET, Redactor, without_user_info
from muster_protocol.messages import Result

SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="[]%"), min_size=MIN_SECRET, max_size=40)


@given(st.text(), SECRETS, st.text())
def test_a_known_secret_is_replaced_by_its_name_wherever_it_stands(before: str, secret: str, after: str):
    shown = Redactor([("SHOP_KEY", secret)])(f"{before} {secret} {after}")

    assert "[redacted SHOP_KEY]" in shown
    assert secret not in shown.replace("[redacted SHOP_KEY]", "")


@given(st.text())
def test_a_text_without_secrets_is_not_changed(text: str):
    assert Redactor()(text) == text
    assert Redactor([("PIN", "1234567")])(text) == text  # too short to be looked for


@given(SECRETS)
def test_a_body_loses_secrets_in_its_free_text_also_in_json_within_json(secret: str):
    redactor = Redactor([("KEY", secret)])
    call = {"tool": "get", "arguments": json.dumps({"token": secret})}
    result = Result.of(
        {
            "request_id": "r",
            "task_id": "t",
            "attempt": 1,
            "status": "failed",
            "output": {"deep": [f"is {secret}"]},
            "error": {"class": "network", "message": f"no {secret}", "stack": secret},
            "worker": "w",
            "role": "clerk",
            "tool_calls": [call],
        }
    )

    body = redactor.body(result.body(), result.free_text)

    assert redactor.is_in(result.body())
    read = Result.read(body)
    assert read.output == {"deep": ["is [redacted KEY]"]}
    assert read.error is not None
    assert (read.error.message, read.error.stack) == ("no [redacted KEY]", "[redacted KEY]")
    assert read.tool_calls == ({"tool": "get", "arguments": '{"token": "[redacted KEY]"}'},)


def test_a_password_that_is_also_the_name_of_a_task_breaks_no_message():
    redactor = Redactor([("DB_PASSWORD", "research")])
    fields = {"request_id": "research", "task_id": "research", "attempt": 1, "status": "done", "worker": "research"}
    result = Result.of({**fields, "role": "research", "output": "the password is research"})

    read = Result.read(redactor.body(result.body(), result.free_text))

    assert (read.request_id, read.task_id, read.worker, read.role) == ("research",) * 4
    assert read.output == "the password is [redacted DB_PASSWORD]"


def test_every_secret_that_the_process_reads_is_known_under_its_name(tmp_path: Path):
    (tmp_path / "key").write_text("sk-from-a-file\n")
    (tmp_path / "creds").write_text("-----BEGIN USER NKEY SEED-----\nSUAABBCCDDEEFF\n------END USER NKEY SEED------\n")
    env = {
        "SHOP_API_KEY": "abcdefgh",
        "MUSTER_NATS_URL": "nats://me:pass%40word1@host:4222,nats://long-token@other:4222",
        "ANTHROPIC_API_KEY_FILE": str(tmp_path / "key"),
        "MUSTER_NATS_CREDS": str(tmp_path / "creds"),
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20collector-token,x=1",
        "HOME": "/home/somebody",
        "SHORT_KEY": "abc",
    }
    redactor = Redactor(read_settings(env).secrets)

    assert redactor("abcdefgh pass@word1 long-token") == (
        "[redacted SHOP_API_KEY] [redacted MUSTER_NATS_URL] [redacted MUSTER_NATS_URL]"
    )
    assert redactor("sk-from-a-file SUAABBCCDDEEFF") == "[redacted ANTHROPIC_API_KEY_FILE] [redacted MUSTER_NATS_CREDS]"
    assert redactor("collector-token") == "[redacted OTEL_EXPORTER_OTLP_HEADERS]"
    assert redactor(f"{tmp_path}/key /home/somebody abc") == f"{tmp_path}/key /home/somebody abc"


def test_an_address_is_shown_without_user_and_password():
    assert without_user_info("at nats://me:pw@a:4222,tls://token@b") == "at nats://a:4222,tls://b"
    assert without_user_info("mail me@example.org or http://a/b@c") == "mail me@example.org or http://a/b@c"
