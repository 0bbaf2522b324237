"""Numbers of results, as Prometheus reads them."""

from muster_coordinator.metrics import MAX_PROVIDERS, MAX_ROLES, ResultNumbers

FAILED = {"sender": "worker/w1/math", "status": "failed", "error-class": "network"}
PAID = {"sender": "worker/w1/writer", "status": "done", "tokens": "120", "usd": "0.25"}


def lines(*results: dict[str, str]) -> list[str]:
    numbers = ResultNumbers()
    for headers in results:
        numbers.add(headers)
    return [line for line in numbers.text({"done": 2, "failed": 0}).splitlines() if not line.startswith("#")]


def test_results_are_counted_by_role_status_and_class_of_error():
    assert lines(FAILED, FAILED, PAID) == [
        'muster_requests{status="done"} 2',
        'muster_requests{status="failed"} 0',
        'muster_results_total{role="math",status="failed",error_class="network"} 2',
        'muster_results_total{role="writer",status="done",error_class=""} 1',
        'muster_tokens_total{role="writer"} 120',
        'muster_usd_total{role="writer"} 0.250000',
    ]


def test_what_an_owner_writes_has_no_role():
    timeout = {"sender": "supervisor/s1", "status": "failed", "error-class": "timeout"}

    assert 'muster_results_total{role="",status="failed",error_class="timeout"} 1' in lines(timeout)


def test_foreign_words_are_counted_together():
    strange = [{"sender": "worker/w1/math", "status": f"s{number}", "error-class": f"c{number}"} for number in range(9)]

    assert 'muster_results_total{role="math",status="other",error_class="other"} 9' in lines(*strange)


def test_there_are_no_more_roles_than_a_store_of_numbers_bears():
    many = [{"sender": f"worker/w/{number}", "status": "done"} for number in range(MAX_ROLES + 5)]

    found = [line for line in lines(*many) if line.startswith("muster_results_total")]

    assert len(found) == MAX_ROLES + 1
    assert 'muster_results_total{role="other",status="done",error_class=""} 5' in found


def test_waits_for_a_limit_are_counted_by_provider():
    numbers = ResultNumbers()
    for said in (
        "anthropic's limit of 60 requests a minute",
        "anthropic, which says no",
        "{}",
        *map(_strange, range(90)),
    ):
        numbers.add_wait(said)
    found = [line for line in numbers.text({}).splitlines() if line.startswith("muster_limit_waits_total")]

    assert 'muster_limit_waits_total{provider="anthropic"} 2' in found
    assert len(found) <= MAX_PROVIDERS + 1


def _strange(number: int) -> str:
    return f"p{number}'s limit"
