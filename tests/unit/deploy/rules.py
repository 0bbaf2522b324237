"""What every manifest must keep, as written and as rendered: each rule returns its complaints."""

import re
from collections.abc import Callable, Iterable

from tests.unit.deploy.manifests import Document, Workload, selected, services, workloads

RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
RESTRICTED_POD = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001}
RESTART_SECONDS = 30  # from the moment that a pod of ours hangs until it is killed
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

Rule = Callable[[list[Document]], list[str]]


def quantity(text: str) -> int:
    match = re.fullmatch(r"(\d+)(|Ki|Mi|Gi)", text)
    if match is None:
        raise ValueError(f"{text!r} is not a number of bytes like 128Mi")
    return int(match[1]) * UNITS[match[2]]


def selectors_match(of: list[Document]) -> list[str]:
    """A controller selects its own pods; a Service and a disruption budget those of exactly one workload."""
    pods = workloads(of)
    found = [
        f"{workload.kind} {workload.name} does not select its own pods"
        for workload in pods
        if not workload.document["spec"]["selector"]["matchLabels"].items() <= workload.labels.items()
    ]
    for document in of:
        match document:
            case {"kind": "Service", "spec": {"selector": selector}}:
                chosen = selected(selector, pods)
            case {"kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": selector}}}:
                chosen = selected(selector, pods)
            case _:
                continue
        if len(chosen) != 1:
            found.append(f"{document['kind']} {document['metadata']['name']} selects {chosen or 'nothing'}")
    return found


def target_ports_exist(of: list[Document]) -> list[str]:
    pods = workloads(of)
    return [
        f"Service {service['metadata']['name']}: no port {port['targetPort']!r} on {workload.name}"
        for service in services(of)
        for workload in pods
        if service["spec"]["selector"].items() <= workload.labels.items()
        for port in service["spec"]["ports"]
        if port["targetPort"] not in workload.ports
    ]


def probes_are_set(of: list[Document]) -> list[str]:
    return [
        f"{workload.name}: {name} {complaint}"
        for workload in workloads(of)
        for name in PROBES
        for complaint in probe_complaints(workload, name)
    ]


def probe_complaints(workload: Workload, name: str) -> Iterable[str]:
    probe = workload.container.get(name)
    if probe is None:
        yield "is missing"
    elif probe["httpGet"]["port"] not in workload.ports:
        yield f"asks port {probe['httpGet']['port']!r}, which the container does not have"


def hung_pods_are_restarted_soon(of: list[Document]) -> list[str]:
    """The pod's own grace time, which is for finishing work, would add minutes."""
    found: list[str] = []
    for workload in workloads(of):
        probe = workload.container.get("livenessProbe")
        if not workload.is_ours or probe is None:
            continue
        grace = probe.get("terminationGracePeriodSeconds", workload.pod["terminationGracePeriodSeconds"])
        seconds = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"] + grace
        if seconds > RESTART_SECONDS:
            found.append(f"{workload.name}: a hung pod is killed after {seconds} s, not {RESTART_SECONDS}")
    return found


def deleting_deletes_no_data(of: list[Document]) -> list[str]:
    """`kubectl delete -k` deletes everything that is listed, and with a namespace all that is in it."""
    found = [
        f"{document['kind']} {document['metadata']['name']} would be deleted with its data"
        for document in of
        if document["kind"] in {"Namespace", "PersistentVolumeClaim"}
    ]
    for workload in workloads(of):
        spec = workload.document["spec"]
        kept = spec.get("persistentVolumeClaimRetentionPolicy", {})
        if "volumeClaimTemplates" in spec and kept != {"whenDeleted": "Retain", "whenScaled": "Retain"}:
            found.append(f"{workload.name}: its disks are not kept")
    return found


def pods_are_restricted(of: list[Document]) -> list[str]:
    return [
        f"{workload.name}: {complaint}" for workload in workloads(of) for complaint in security_complaints(workload)
    ]


def security_complaints(workload: Workload) -> Iterable[str]:
    pod = workload.pod.get("securityContext", {})
    for key, wanted in RESTRICTED_POD.items():
        if pod.get(key) != wanted:
            yield f"pod {key} is {pod.get(key)!r}, not {wanted!r}"
    if pod.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "seccompProfile is not RuntimeDefault"
    for container in [*workload.first, workload.container]:
        given = container.get("securityContext", {})
        for key, wanted in RESTRICTED_CONTAINER.items():
            if given.get(key) != wanted:
                yield f"container {container['name']}: {key} is {given.get(key)!r}, not {wanted!r}"
    if workload.pod.get("automountServiceAccountToken") is not False:
        yield "mounts a service account token that nothing uses"


def resources_are_set(of: list[Document]) -> list[str]:
    """Requests for both; a memory limit; no CPU limit, because throttling would delay keep-alives."""
    return [
        f"{workload.name}: {container['name']} {complaint}"
        for workload in workloads(of)
        for container in [*workload.first, workload.container]
        for complaint in resource_complaints(container)
    ]


def resource_complaints(container: Document) -> Iterable[str]:
    resources = container.get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    if requests.keys() != {"cpu", "memory"}:
        yield f"requests {sorted(requests)}, not cpu and memory"
    elif limits.keys() != {"memory"}:
        yield f"limits {sorted(limits)}, not memory alone"
    elif quantity(limits["memory"]) < quantity(requests["memory"]):
        yield "may use less memory than it requests"


def mounts_have_volumes(of: list[Document]) -> list[str]:
    found: list[str] = []
    for workload in workloads(of):
        claims = workload.document["spec"].get("volumeClaimTemplates", [])
        volumes = {volume["name"] for volume in workload.pod.get("volumes", [])} | {
            claim["metadata"]["name"] for claim in claims
        }
        mounts = {mount["name"] for mount in workload.container.get("volumeMounts", [])}
        before = {mount["name"] for container in workload.first for mount in container.get("volumeMounts", [])}
        if mounts != volumes or not before <= volumes:
            found.append(f"{workload.name}: mounts {sorted(mounts | before)}, has volumes {sorted(volumes)}")
    return found


def config_maps_are_made(of: list[Document]) -> list[str]:
    plan_entry = {document["metadata"]["name"] for document in of if document["kind"] == "ConfigMap"}
    return [
        f"{workload.name}: no ConfigMap {name}"
        for workload in workloads(of)
        for name in config_maps(workload)
        if name not in plan_entry
    ]


def config_maps(workload: Workload) -> list[str]:
    """The names of the ConfigMaps that the pods read."""
    by_env = [
        source["configMapRef"]["name"]
        for container in [*workload.first, workload.container]
        for source in container.get("envFrom", [])
    ]
    by_file = [volume["configMap"]["name"] for volume in workload.pod.get("volumes", []) if "configMap" in volume]
    return by_env + by_file


def every_service_provisions_for_all_brokers(of: list[Document]) -> list[str]:
    """Else a changed setting reaches the streams never, one dead broker stops everything, one lost disk loses all."""
    brokers = next((it.document["spec"]["replicas"] for it in workloads(of) if it.name == "nats"), None)
    found: list[str] = []
    for workload in workloads(of):
        if not workload.is_ours:
            continue
        commands = [arguments(workload, container, of) for container in workload.first]
        if [command[0] for command in commands] != ["provision"]:
            found.append(f"{workload.name}: starts without provisioning")
        elif brokers is not None and commands[0][-2:] != ["--replicas", str(brokers)]:
            found.append(f"{workload.name}: runs {' '.join(commands[0])!r}, but there are {brokers} brokers")
    return found


def arguments(workload: Workload, container: Document, of: list[Document]) -> list[str]:
    """The container's arguments, with the settings put in as Kubernetes does."""
    read = [document for document in of if document["metadata"]["name"] in config_maps(workload)]
    settings = {name: value for document in read for name, value in document["data"].items()}
    return [re.sub(r"\$\((\w+)\)", lambda found: settings[found[1]], word) for word in container["args"]]


RULES: list[Rule] = [
    selectors_match,
    target_ports_exist,
    probes_are_set,
    hung_pods_are_restarted_soon,
    deleting_deletes_no_data,
    pods_are_restricted,
    resources_are_set,
    mounts_have_volumes,
    config_maps_are_made,
    every_service_provisions_for_all_brokers,
]
