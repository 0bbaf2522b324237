"""The compose file agrees with the Kubernetes manifests."""

import re
from typing import Any

import pytest

from tests.unit.deploy.manifests import (
    CLOSING_SECONDS,
    ROOT,
    Document,
    Workload,
    compose,
    manifests,
    settings,
    workloads,
)

MUSTER = ["provision", "supervisor", "worker", "coordinator"]
LONG_RUNNING = MUSTER[1:]
MODEL_USERS = {"supervisor", "worker"}
REPLICAS = "STREAM_REPLICAS"  # Compose has one broker


def service(name: str) -> Document:
    return compose()["services"][name]


def workload(name: str) -> Workload:
    (only,) = [it for it in workloads(manifests()) if it.name == name]
    return only


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_both_run_the_same_things_from_the_same_images():
    in_compose = {name: entry["image"] for name, entry in compose()["services"].items()}
    of_pods = {it.name: it.container["image"] for it in workloads(manifests())}
    first = {it["name"]: it["image"] for pod in workloads(manifests()) for it in pod.first}

    assert in_compose == of_pods | first


def test_our_services_share_one_image_and_one_of_them_builds_it():
    ours = [service(name) for name in MUSTER]

    assert {entry["image"] for entry in ours} == {"muster:dev"}
    assert [name for name in MUSTER if "build" in service(name)] == ["provision"]


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_both_give_the_same_command(name: str):
    assert service(name)["command"] == workload(name).container["args"]


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_both_provision_and_kubernetes_says_for_how_many_brokers_and_waits_for_them(name: str):
    (first,) = workload(name).first

    assert first["args"] == [*service("provision")["command"], "--wait", "forever", "--replicas", f"$({REPLICAS})"]


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_both_set_the_same_variables(name: str):
    in_kubernetes = {*settings("base"), *settings("components/jaeger"), *workload(name).env}
    key = {"ANTHROPIC_API_KEY"} if name in MODEL_USERS else set[str]()  # a Secret's file in components/claude
    secret = {"MUSTER_CALLBACK_SECRET"} if name == "supervisor" else set[str]()  # there a Secret of whoever calls back

    assert set(service(name)["environment"]) | {REPLICAS} == in_kubernetes | key | secret


@pytest.mark.parametrize(
    "name", ["MUSTER_NATS_URL", "MUSTER_TEAM_FILE", "MUSTER_HTTP_HOST", "OTEL_EXPORTER_OTLP_ENDPOINT"]
)
def test_both_use_the_same_addresses_and_paths(name: str):
    assert compose()["x-settings"][name] == {**settings("base"), **settings("components/jaeger")}[name]


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_both_ask_the_same_port_for_health(name: str):
    port = workload(name).ports[workload(name).container["readinessProbe"]["httpGet"]["port"]]
    variable = "MUSTER_HTTP_PORT" if name == "coordinator" else "MUSTER_HEALTH_PORT"

    assert f"http://127.0.0.1:{port}/readyz" in service(name)["healthcheck"]["test"][-1]
    assert service(name)["environment"][variable] == workload(name).env[variable] == str(port)


@pytest.mark.parametrize("name", ["nats", "coordinator", "jaeger"])
def test_ports_are_published_on_this_machine_only(name: str):
    published: list[str] = service(name)["ports"]

    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    assert {int(port.rsplit(":", 1)[1]) for port in published} <= set(workload(name).ports.values())


def test_no_other_service_publishes_a_port():
    assert {name for name, entry in compose()["services"].items() if "ports" in entry} == {
        "nats",
        "coordinator",
        "jaeger",
    }


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_a_container_is_not_killed_before_its_own_grace_time_ends(name: str):
    entry = service(name)

    needed = int(entry["environment"]["MUSTER_GRACE_SECONDS"]) + CLOSING_SECONDS

    assert needed <= seconds(entry["stop_grace_period"])


@pytest.mark.parametrize("name", list(compose()["services"]))
def test_every_container_runs_with_the_least_rights(name: str):
    entry = service(name)

    assert entry["read_only"] is True
    assert entry["cap_drop"] == ["ALL"]
    assert entry["security_opt"] == ["no-new-privileges:true"]


def test_services_start_after_the_streams_are_made():
    wanted = {"provision": {"condition": "service_completed_successfully"}}

    assert {name: service(name)["depends_on"] for name in LONG_RUNNING} == dict.fromkeys(LONG_RUNNING, wanted)


def test_nothing_waits_for_jaeger():
    waiting: dict[str, Any] = {name: entry.get("depends_on", {}) for name, entry in compose()["services"].items()}

    assert [name for name, waits_for in waiting.items() if "jaeger" in waits_for] == []


def test_every_variable_of_ours_that_is_set_is_read_by_the_code():
    names = {name for entry in MUSTER for name in service(entry)["environment"] if name.startswith("MUSTER_")}
    sources = [path for folder in ("libs", "services", "cli") for path in (ROOT / folder).rglob("*.py")]
    read = {name for path in sources for name in re.findall(r"MUSTER_[A-Z_]+", path.read_text(encoding="utf-8"))}

    assert names - read == set()
