"""The picture, counted from headers."""

from muster_coordinator.overview import Overview

OWNER = {"sender": "supervisor/s1"}


def _taken() -> dict[str, str]:
    return {**OWNER, "kind": "taken"}


def _result(status: str = "done", **more: str) -> dict[str, str]:
    return {"sender": "worker/w1/math", "kind": "result", "status": status, **more}


def _answer(term: int) -> dict[str, str]:
    return {**OWNER, "kind": "answer", "status": "partial", "seconds": "2.5", "term": str(term)}


def test_a_request_is_counted_entry_by_entry():
    overview = Overview()
    overview.count("r1", 5, _taken(), b"{}")
    overview.count("r1", 6, _result(tokens="12", usd="0.5"), b"")
    overview.count("r1", 7, _result("failed"), b"")
    overview.count("r1", 8, _answer(5), b"")

    summary = overview.ended["r1"]

    assert (summary.done, summary.failed, summary.tokens, summary.usd) == (1, 1, 12, 0.5)
    assert (summary.status, summary.seconds, summary.owner) == ("partial", 2.5, "s1")
    assert overview.counts() == {"waiting": 0, "open": 0, "partial": 1}


def test_the_team_is_known_from_whoever_took_the_request():
    body = b'{"instance":"s1","delivery":1,"team":"shop","deadline":9.0,"request_hash":"x","request_sequence":1}'
    overview = Overview()
    overview.count("r1", 5, _taken(), body)

    assert overview.open["r1"].team == "shop"


def test_an_entry_counts_once():
    overview = Overview()
    for _ in range(2):
        overview.count("r1", 5, _taken(), b"{}")
        overview.count("r1", 6, _result(), b"")

    assert overview.open["r1"].done == 1


def test_an_answer_of_a_former_owner_does_not_end_a_request():
    overview = Overview()
    overview.count("r1", 5, _taken(), b"{}")
    overview.count("r1", 6, _taken(), b"{}")
    overview.count("r1", 7, _answer(5), b"")

    assert list(overview.open) == ["r1"]


def test_a_request_that_was_handed_back_keeps_its_term():
    overview = Overview()
    overview.count("r1", 5, _taken(), b"{}")
    overview.count("r1", 6, _taken(), b'{"handed_back":true}')
    overview.count("r1", 7, _answer(5), b"")

    assert list(overview.ended) == ["r1"]


def test_a_gap_asks_for_the_log_to_be_read():
    overview = Overview()
    overview.count("r1", 5, _taken(), b"{}")

    assert overview.is_next("r1", 6, 5)
    assert not overview.is_next("r1", 9, 8)
    assert not overview.is_next("unheard-of", 9, 8)
    assert list(overview.unread) == ["r1", "unheard-of"]


def test_a_stray_message_does_not_make_a_request():
    overview = Overview()
    overview.count("r1", 5, _result(), b"")

    assert overview.get("r1") is None


def test_numbers_that_are_none_count_nothing():
    overview = Overview()
    overview.count("r1", 5, _taken(), b"{}")
    overview.count("r1", 6, _result(tokens="many", usd="nan"), b"")
    overview.count("r1", 7, _result(tokens="9" * 5000, usd="1e999"), b"")

    assert (overview.open["r1"].tokens, overview.open["r1"].usd) == (0, 0.0)


def test_memory_is_bounded():
    overview = Overview(max_open=2, max_ended=1)
    for number in range(1, 6):
        overview.count(f"r{number}", number, _taken(), b"{}")
    for number in (4, 5):
        overview.count(f"r{number}", number + 10, _answer(number), b"")

    assert (list(overview.open), list(overview.ended)) == ([], ["r5"])
