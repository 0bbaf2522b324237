"""The Kubernetes manifests as written: schemas, references, hardening."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.unit.deploy import rules
from tests.unit.deploy.manifests import (
    CLOSING_SECONDS,
    K8S,
    documents,
    generated,
    kustomization,
    kustomizations,
    manifests,
    resource_files,
    settings,
    workloads,
)

OLDEST = "1.30"  # the first in which `preStop: sleep` is on by default
SERVICES = ["supervisor", "worker", "coordinator"]
(NAMESPACE,) = documents((K8S / "namespace.yaml").read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return str(path.relative_to(K8S))


@pytest.mark.parametrize("path", sorted(K8S.rglob("*.yaml")), ids=relative)
def test_every_yaml_file_parses(path: Path):
    assert list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("path", resource_files(), ids=relative)
def test_every_manifest_keeps_the_schema_of_kubernetes(path: Path, version: str):
    for document in documents(path.read_text(encoding="utf-8")):
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_manifest_keeps_the_rule(rule: rules.Rule):
    assert rule(manifests()) == []


@pytest.mark.parametrize("path", kustomizations(), ids=relative)
def test_everything_a_kustomization_names_exists(path: Path):
    (document,) = documents(path.read_text(encoding="utf-8"))
    named = [
        *document.get("resources", []),
        *document.get("components", []),
        *(patch["path"] for patch in document.get("patches", [])),
        *(name for generator in document.get("configMapGenerator", []) for name in generator.get("files", [])),
    ]

    assert [name for name in named if not (path.parent / name).exists()] == []


@pytest.mark.parametrize("path", kustomizations(), ids=relative)
def test_no_file_lies_beside_a_kustomization_unused(path: Path):
    text = path.read_text(encoding="utf-8") + " README.md\n"

    assert [file.name for file in path.parent.iterdir() if file != path and f" {file.name}\n" not in text] == []


@pytest.mark.parametrize("folder", sorted((K8S / "components").iterdir()), ids=relative)
def test_every_component_has_a_page_that_says_how_to_turn_it_on_what_it_needs_and_three_commands(folder: Path):
    page = (folder / "README.md").read_text(encoding="utf-8")

    assert page.startswith(f"# {folder.name}: ")
    assert f"**Turn it on:** `components: [../../components/{folder.name}]`" in page
    assert "**Needs:** " in page
    assert len([line for line in page.splitlines() if line.startswith("$ kubectl ")]) == 3


def test_every_config_map_that_is_generated_is_read():
    read = {name for workload in workloads(manifests()) for name in rules.config_maps(workload)}

    assert {document["metadata"]["name"] for document in generated()} == read


def test_there_is_one_deployment_for_each_service():
    base = documents("---\n".join((K8S / "base" / f"{name}.yaml").read_text(encoding="utf-8") for name in SERVICES))

    assert [workload.name for workload in workloads(base)] == SERVICES


@pytest.mark.parametrize("name", SERVICES)
def test_a_pod_is_not_killed_before_its_own_grace_time_ends(name: str):
    (workload,) = [it for it in workloads(manifests()) if it.name == name]
    before = workload.container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)

    needed = before + int(workload.env["MUSTER_GRACE_SECONDS"]) + CLOSING_SECONDS

    assert needed <= workload.pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", SERVICES)
def test_only_a_service_that_is_not_alive_is_restarted_whatever_the_broker_does(name: str):
    (workload,) = [it for it in workloads(manifests()) if it.name == name]
    asked = {probe: workload.container[probe]["httpGet"]["path"] for probe in rules.PROBES}

    assert asked == {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}


def test_the_base_names_no_namespace_and_the_local_overlay_does():
    assert "namespace" not in kustomization("base")
    assert kustomization("overlays/local")["namespace"] == NAMESPACE["metadata"]["name"]


def test_the_namespace_refuses_pods_that_are_not_restricted():
    assert NAMESPACE["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_addresses_in_the_settings_are_services_with_that_port():
    addresses = {
        f"//{service['metadata']['name']}:{port['port']}"
        for service in manifests()
        if service["kind"] == "Service"
        for port in service["spec"]["ports"]
    }
    used = {settings("base")["MUSTER_NATS_URL"], settings("components/jaeger")["OTEL_EXPORTER_OTLP_ENDPOINT"]}

    assert {address[address.index("//") :] for address in used} <= addresses
