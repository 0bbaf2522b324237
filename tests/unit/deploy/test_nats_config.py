"""The brokers' configuration files, read by the real nats-server."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from muster_bus.broker.topology import Provisioning, streams
from tests.unit.deploy.manifests import K8S, ROOT, Workload, manifests, workloads
from tests.unit.deploy.rules import quantity

DEV = ROOT / "deploy" / "nats" / "dev.conf"
PRODUCTION = K8S / "components" / "nats" / "nats.conf"
NATS_SERVER = Path(sysconfig.get_path("scripts")) / "nats-server"


def value(path: Path, key: str) -> str:
    (found,) = re.findall(rf"^\s*{key}: *([^#\s]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found


def brokers() -> Workload:
    (only,) = [it for it in workloads(manifests()) if it.name == "nats"]
    return only


@pytest.mark.parametrize("path", [DEV, PRODUCTION], ids=["dev", "production"])
def test_the_server_accepts_the_file(path: Path):
    check = subprocess.run(
        [NATS_SERVER, "-t", "-c", path],
        env={**os.environ, "POD_NAME": "nats-0"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert "is valid" in check.stderr, check.stderr


@pytest.mark.parametrize("path", [DEV, PRODUCTION], ids=["dev", "production"])
def test_the_largest_message_is_that_of_the_protocol(path: Path):
    assert value(path, "max_payload") == "8MB"


def test_production_syncs_every_write_and_development_every_second():
    assert value(PRODUCTION, "sync_interval") == "always"
    assert value(DEV, "sync_interval") == "1s"


def test_the_store_is_full_before_the_disk_is():
    (claim,) = brokers().document["spec"]["volumeClaimTemplates"]
    store = quantity(value(PRODUCTION, "max_file_store").replace("GB", "Gi"))

    assert store <= 0.8 * quantity(claim["spec"]["resources"]["requests"]["storage"])


@pytest.mark.parametrize("path", [DEV, PRODUCTION], ids=["dev", "production"])
def test_the_streams_and_the_buckets_fit_into_the_store(path: Path):
    sizes = [stream.max_bytes or 0 for stream in streams(Provisioning(), ["team"], ["tag"])]

    assert sum(sizes) < quantity(value(path, "max_file_store").replace("GB", "Gi"))


def test_there_is_a_route_to_every_broker():
    routes = re.findall(r"nats://nats-(\d)\.nats-headless:6222", PRODUCTION.read_text(encoding="utf-8"))

    assert [int(route) for route in routes] == list(range(brokers().document["spec"]["replicas"]))


def test_a_broker_has_time_to_hand_over_before_it_is_killed():
    duration = sum(
        int(value(PRODUCTION, f"lame_duck_{part}").removesuffix("s")) for part in ("grace_period", "duration")
    )

    assert duration < brokers().pod["terminationGracePeriodSeconds"]
