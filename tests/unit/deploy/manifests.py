"""The deployment files as values: Kubernetes manifests, kustomizations, the compose file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
K8S = ROOT / "deploy" / "k8s"
COMPOSE = ROOT / "docker-compose.yml"
CLOSING_SECONDS = 12  # after the grace time a service still closes its connection and its exporter, each step bounded

Document = dict[str, Any]  # YAML of a foreign schema; kubernetes-validate and docker check its types, not we


@dataclass(frozen=True)
class Workload:
    """Something that makes pods: a Deployment or a StatefulSet."""

    document: Document

    @property
    def name(self) -> str:
        return self.document["metadata"]["name"]

    @property
    def kind(self) -> str:
        return self.document["kind"]

    @property
    def labels(self) -> dict[str, str]:
        return self.document["spec"]["template"]["metadata"]["labels"]

    @property
    def pod(self) -> Document:
        return self.document["spec"]["template"]["spec"]

    @property
    def container(self) -> Document:
        (only,) = self.pod["containers"]
        return only

    @property
    def first(self) -> list[Document]:
        """The containers that must end before the service starts."""
        return self.pod.get("initContainers", [])

    @property
    def is_ours(self) -> bool:
        return self.labels["app.kubernetes.io/name"] == "muster"

    @property
    def ports(self) -> dict[str, int]:
        return {port["name"]: port["containerPort"] for port in self.container.get("ports", [])}

    @property
    def env(self) -> dict[str, str]:
        return {entry["name"]: entry.get("value", "") for entry in self.container.get("env", [])}


def documents(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


def kustomizations() -> list[Path]:
    return sorted(K8S.rglob("kustomization.yaml"))


def kustomization(folder: str) -> Document:
    (document,) = documents((K8S / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    return document


def settings(folder: str) -> dict[str, str]:
    """What the kustomization in the folder puts into the ConfigMap that all services read."""
    generators = kustomization(folder)["configMapGenerator"]
    (generator,) = [generator for generator in generators if generator["name"] == "muster-settings"]
    return dict(literal.split("=", 1) for literal in generator["literals"])


def resource_files() -> list[Path]:
    return sorted(
        path.parent / resource
        for path in kustomizations()
        for resource in documents(path.read_text(encoding="utf-8"))[0].get("resources", [])
        if resource.endswith(".yaml")
    )


def manifests() -> list[Document]:
    """Every manifest of base and components, as written, and every ConfigMap that they generate together."""
    written = [document for path in resource_files() for document in documents(path.read_text(encoding="utf-8"))]
    return [*written, *generated()]


def generated() -> list[Document]:
    maps: dict[str, dict[str, str]] = {}
    for path in kustomizations():
        for generator in kustomization(str(path.parent.relative_to(K8S))).get("configMapGenerator", []):
            literals = (literal.split("=", 1) for literal in generator.get("literals", []))
            maps.setdefault(generator["name"], {}).update(dict(literals))
    return [{"kind": "ConfigMap", "metadata": {"name": name}, "data": data} for name, data in maps.items()]


def workloads(of: Iterable[Document]) -> list[Workload]:
    return [Workload(document) for document in of if document["kind"] in {"Deployment", "StatefulSet"}]


def services(of: Iterable[Document]) -> Iterator[Document]:
    return (document for document in of if document["kind"] == "Service")


def compose() -> Document:
    (document,) = documents(COMPOSE.read_text(encoding="utf-8"))
    return document


def selected(selector: dict[str, str], among: Iterable[Workload]) -> list[str]:
    return [workload.name for workload in among if selector.items() <= workload.labels.items()]
