"""The rules for manifests find what they are there to find."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.deploy import rules
from tests.unit.deploy.manifests import Document, manifests

CONTAINER = "spec.template.spec.containers.0"
FIRST = "spec.template.spec.initContainers.0"
ALL_OF_OURS = "['coordinator', 'supervisor', 'worker']"


@dataclass(frozen=True)
class Mistake:
    """One value of one manifest, replaced; and what the rule says to it."""

    rule: rules.Rule
    kind: str
    name: str
    path: str
    value: object
    complaint: str

    def plan_entry(self) -> list[Document]:
        changed = copy.deepcopy(manifests())
        target: Any = next(it for it in changed if (it["kind"], it["metadata"]["name"]) == (self.kind, self.name))
        *way, last = self.path.split(".")
        for key in way:
            target = target[int(key) if key.isdigit() else key]
        target[last] = self.value
        return changed


MISTAKES = [
    Mistake(
        rules.selectors_match,
        "Service",
        "coordinator",
        "spec.selector",
        {"app.kubernetes.io/component": "door"},
        "Service coordinator selects nothing",
    ),
    Mistake(
        rules.selectors_match,
        "PodDisruptionBudget",
        "worker",
        "spec.selector.matchLabels",
        {"app.kubernetes.io/name": "muster"},
        f"PodDisruptionBudget worker selects {ALL_OF_OURS}",
    ),
    Mistake(
        rules.selectors_match,
        "Deployment",
        "worker",
        "spec.selector.matchLabels",
        {"app.kubernetes.io/name": "other"},
        "Deployment worker does not select its own pods",
    ),
    Mistake(
        rules.target_ports_exist,
        "Service",
        "coordinator",
        "spec.ports.0.targetPort",
        "web",
        "Service coordinator: no port 'web' on coordinator",
    ),
    Mistake(
        rules.probes_are_set,
        "Deployment",
        "worker",
        f"{CONTAINER}.livenessProbe",
        None,
        "worker: livenessProbe is missing",
    ),
    Mistake(
        rules.probes_are_set,
        "Deployment",
        "supervisor",
        f"{CONTAINER}.startupProbe.httpGet.port",
        "http",
        "supervisor: startupProbe asks port 'http', which the container does not have",
    ),
    Mistake(
        rules.hung_pods_are_restarted_soon,
        "Deployment",
        "worker",
        f"{CONTAINER}.livenessProbe.terminationGracePeriodSeconds",
        120,
        "worker: a hung pod is killed after 143 s, not 30",
    ),
    Mistake(
        rules.deleting_deletes_no_data,
        "PodDisruptionBudget",
        "worker",
        "kind",
        "Namespace",
        "Namespace worker would be deleted with its data",
    ),
    Mistake(
        rules.deleting_deletes_no_data,
        "StatefulSet",
        "nats",
        "spec.persistentVolumeClaimRetentionPolicy",
        {"whenDeleted": "Delete", "whenScaled": "Retain"},
        "nats: its disks are not kept",
    ),
    Mistake(
        rules.pods_are_restricted,
        "Deployment",
        "supervisor",
        "spec.template.spec.securityContext.runAsUser",
        0,
        "supervisor: pod runAsUser is 0, not 10001",
    ),
    Mistake(
        rules.pods_are_restricted,
        "Deployment",
        "jaeger",
        f"{CONTAINER}.securityContext.readOnlyRootFilesystem",
        False,
        "jaeger: container jaeger: readOnlyRootFilesystem is False, not True",
    ),
    Mistake(
        rules.pods_are_restricted,
        "Deployment",
        "worker",
        f"{FIRST}.securityContext.allowPrivilegeEscalation",
        True,
        "worker: container provision: allowPrivilegeEscalation is True, not False",
    ),
    Mistake(
        rules.resources_are_set,
        "StatefulSet",
        "nats",
        f"{CONTAINER}.resources.limits",
        {"cpu": "1", "memory": "1Gi"},
        "nats: nats limits ['cpu', 'memory'], not memory alone",
    ),
    Mistake(
        rules.resources_are_set,
        "Deployment",
        "worker",
        f"{CONTAINER}.resources.limits.memory",
        "128Mi",
        "worker: worker may use less memory than it requests",
    ),
    Mistake(
        rules.resources_are_set,
        "Deployment",
        "worker",
        f"{FIRST}.resources.requests",
        {"cpu": "50m"},
        "worker: provision requests ['cpu'], not cpu and memory",
    ),
    Mistake(
        rules.mounts_have_volumes,
        "Deployment",
        "jaeger",
        "spec.template.spec.volumes",
        [{"name": "scratch"}],
        "jaeger: mounts ['tmp'], has volumes ['scratch']",
    ),
    Mistake(
        rules.config_maps_are_made,
        "Deployment",
        "jaeger",
        f"{CONTAINER}.envFrom",
        [{"configMapRef": {"name": "lost"}}],
        "jaeger: no ConfigMap lost",
    ),
    Mistake(
        rules.config_maps_are_made,
        "Deployment",
        "supervisor",
        f"{FIRST}.envFrom",
        [{"configMapRef": {"name": "lost"}}],
        "supervisor: no ConfigMap lost",
    ),
    Mistake(
        rules.every_service_provisions_for_all_brokers,
        "Deployment",
        "worker",
        "spec.template.spec.initContainers",
        [],
        "worker: starts without provisioning",
    ),
    Mistake(
        rules.every_service_provisions_for_all_brokers,
        "Deployment",
        "coordinator",
        f"{FIRST}.args",
        ["provision"],
        "coordinator: runs 'provision', but there are 3 brokers",
    ),
    Mistake(
        rules.every_service_provisions_for_all_brokers,
        "ConfigMap",
        "muster-settings",
        "data.STREAM_REPLICAS",
        "1",
        "supervisor: runs 'provision --wait forever --replicas 1', but there are 3 brokers",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake.rule.__name__}-{mistake.name}")
def test_a_mistake_is_named(mistake: Mistake):
    assert mistake.complaint in mistake.rule(mistake.plan_entry())


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_rule_has_a_mistake_that_it_finds(rule: rules.Rule):
    assert rule in [mistake.rule for mistake in MISTAKES]
