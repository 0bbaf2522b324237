"""The deployment with the real tools: kubectl renders it, docker builds it, and the composed services answer.

A missing tool fails with the way to install it; `E2E_SKIP=docker,kubectl` leaves out the tests of those tools.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import kubernetes_validate
import pytest

from tests.unit.deploy import rules
from tests.unit.deploy.manifests import K8S, ROOT, Document, documents, kustomizations, workloads

INSTALL = {
    "kubectl": "https://kubernetes.io/docs/tasks/tools/ (brew install kubectl, or snap install kubectl --classic)",
    "docker": "https://docs.docker.com/engine/install/ (Linux: curl -fsSL https://get.docker.com | sh)",
}
SERVICES = ["nats", "provision", "supervisor", "worker", "coordinator"]  # Jaeger may be absent: nothing waits for it
APPLICABLE = [path.parent for path in kustomizations() if "components" not in path.parts]

Compose = Callable[..., str]


def need(tool: str) -> None:
    if tool in os.environ.get("E2E_SKIP", "").split(","):
        pytest.skip(f"E2E_SKIP names {tool}")
    if shutil.which(tool) is None:
        pytest.fail(f"{tool} is not installed: {INSTALL[tool]}, or leave its tests out with E2E_SKIP={tool}")


def run(*command: str, timeout_seconds: int = 60) -> str:
    """What the command printed; its errors are the message when it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_seconds, check=True)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"{' '.join(command)}\nended with {error.returncode}:\n{error.stdout}\n{error.stderr}")
    return done.stdout


def rendered(folder: Path) -> list[Document]:
    need("kubectl")
    return documents(run("kubectl", "kustomize", str(folder)))


@pytest.mark.parametrize("folder", APPLICABLE, ids=lambda folder: str(folder.relative_to(K8S)))
def test_what_kubectl_renders_keeps_the_schema_and_every_rule(folder: Path):
    manifests = rendered(folder)

    for manifest in manifests:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    assert [it for rule in rules.RULES for it in rule(manifests)] == []


def test_the_local_overlay_has_a_broker_and_a_place_for_traces():
    names = {workload.name for workload in workloads(rendered(K8S / "overlays" / "local"))}

    assert names == {"supervisor", "worker", "coordinator", "nats", "jaeger"}


def test_the_base_is_for_any_namespace_and_the_overlay_for_its_own():
    def namespaces(folder: str) -> set[str | None]:
        return {manifest["metadata"].get("namespace") for manifest in rendered(K8S / folder)}

    assert namespaces("base") == {None}
    assert namespaces("overlays/local") == {"muster"}


def test_claude_can_be_added_to_an_overlay_and_gives_the_key_to_those_who_ask_the_model(tmp_path: Path):
    shutil.copytree(K8S, tmp_path / "k8s")
    overlay = tmp_path / "k8s" / "overlays" / "claude"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [../local]\ncomponents: [../../components/claude]\n")

    manifests = rendered(overlay)

    readers = {it.name for it in workloads(manifests) if "ANTHROPIC_API_KEY_FILE" in it.env}
    assert readers == {"supervisor", "worker"}
    assert rules.mounts_have_volumes(manifests) == []


@pytest.fixture(scope="module")
def compose() -> Compose:
    need("docker")

    def call(*arguments: str, timeout_seconds: int = 60) -> str:
        return run("docker", "compose", "--project-name", "muster-e2e", *arguments, timeout_seconds=timeout_seconds)

    return call


@pytest.fixture(scope="module")
def composed(compose: Compose) -> Iterator[Compose]:
    """The services, built and ready, on ports that the engine chooses."""
    with pytest.MonkeyPatch.context() as patch:
        for port in ("NATS_PORT", "NATS_MONITOR_PORT", "COORDINATOR_PORT"):
            patch.setenv(port, "0")
        patch.delenv("ANTHROPIC_API_KEY", raising=False)
        try:
            compose("build", timeout_seconds=900)
            compose("up", "--detach", "--wait", "--wait-timeout", "120", *SERVICES, timeout_seconds=300)
            yield compose
        finally:
            compose("down", "--volumes", timeout_seconds=120)


def test_docker_accepts_the_compose_file(compose: Compose):
    assert set(compose("config", "--services").split()) == {*SERVICES, "jaeger"}


@pytest.mark.timeout(1500)  # the first build downloads everything
def test_the_composed_services_answer_a_request(composed: Compose):
    answer = composed(
        "exec", "-T", "coordinator", "muster", "ask", "--json", "Compare three cloud providers", timeout_seconds=120
    )

    assert json.loads(answer)["status"] == "done"


@pytest.mark.timeout(1500)
def test_the_services_do_not_run_as_root(composed: Compose):
    users = {name: composed("exec", "-T", name, "id", "-u").strip() for name in ("supervisor", "worker", "coordinator")}

    assert set(users.values()) == {"10001"}


@pytest.mark.timeout(1500)
def test_stopped_services_end_by_themselves_with_0(composed: Compose):
    composed("stop", "supervisor", "worker", "coordinator", timeout_seconds=120)

    stopped = [json.loads(line) for line in composed("ps", "--all", "--format", "json").splitlines()]

    assert {it["Service"]: it["ExitCode"] for it in stopped if it["State"] == "exited"} == {
        "provision": 0,
        "supervisor": 0,
        "worker": 0,
        "coordinator": 0,
    }
