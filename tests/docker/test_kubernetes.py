"""The manifests: as Kubernetes's own schema says, and in agreement with each other, the image and the code."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from consumer.config.model import load_config
from consumer.serve.app import application
from consumer.serve.fleet import Fleet
from consumer.serve.server import Access
from consumer.serve.settings import load_settings
from tests.docker.manifests import KUBERNETES, Object, found, identity, kustomized, objects, pod_of
from tests.docker.stack import DOCKER, IMAGE, ROOT, SCHEMAS
from tests.docs.test_readme import check_command_line
from tests.serving.conftest import Client

SCHEMA: dict[str, Any] = json.loads((SCHEMAS / "kubernetes.json").read_text())
VARIANTS = {name: kustomized(KUBERNETES / name) for name in ("base", "spark")}
(SECRET,) = objects(KUBERNETES / "base" / "secret.example.yaml")
(MONITOR,) = objects(KUBERNETES / "base" / "podmonitor.example.yaml")
RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
variants = pytest.mark.parametrize("variant", VARIANTS)


def validate(one: Object) -> None:
    schema = {"$ref": f"#/$defs/{SCHEMA['kinds'][one['kind']]}", "$defs": SCHEMA["$defs"]}
    jsonschema_rs.validator_for(schema).validate(one)


def config_map(manifests: list[Object], name: str) -> dict[str, str]:
    (data,) = (one["data"] for one in found(manifests, "ConfigMap") if one["metadata"]["name"] == name)
    return dict(data)


def laid_out(manifests: list[Object], place: Path) -> Path:
    """The changefeeds as the pod sees them, with the example's secrets; links as Kubernetes makes them."""
    secrets, folder = place / "secrets", place / "changefeeds"
    (folder / "..2026").mkdir(parents=True)
    secrets.mkdir()
    for name, value in SECRET["stringData"].items():
        (secrets / name).write_text(value)
    (folder / "..data").symlink_to("..2026")
    for name, text in config_map(manifests, "ticdc-reconciler-changefeeds").items():
        (folder / "..2026" / name).write_text(text.replace("/run/secrets/reconciler/", f"{secrets}/"))
        (folder / name).symlink_to(f"..data/{name}")
    return folder


@variants
def test_they_are_as_the_schema_says(variant: str) -> None:
    for one in VARIANTS[variant]:
        validate(one)
    validate(SECRET)
    broken = json.loads(json.dumps(found(VARIANTS[variant], "Deployment")[0]))
    broken["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(jsonschema_rs.ValidationError):
        validate(broken)


@variants
def test_all_are_in_the_one_namespace(variant: str) -> None:
    names = {one["metadata"].get("namespace") for one in VARIANTS[variant] if one["kind"] != "Namespace"}
    (namespace,) = found(VARIANTS[variant], "Namespace")
    assert names == {namespace["metadata"]["name"]} == {SECRET["metadata"]["namespace"]}
    assert len({identity(one) for one in VARIANTS[variant]}) == len(VARIANTS[variant])


@variants
def test_selectors_match_the_pods_and_ports_have_names(variant: str) -> None:
    pod = pod_of(VARIANTS[variant])
    labels = pod["metadata"]["labels"].items()
    (deployment,), (service,) = (found(VARIANTS[variant], kind) for kind in ("Deployment", "Service"))
    (budget,) = found(VARIANTS[variant], "PodDisruptionBudget")
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        budget["spec"]["selector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
        MONITOR["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels
    assert budget["spec"]["minAvailable"] < deployment["spec"]["replicas"], "else no node could ever be emptied"
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": int(container["args"][container["args"].index("--port") + 1])}
    (endpoint,) = MONITOR["spec"]["podMetricsEndpoints"]
    used = {service["spec"]["ports"][0]["targetPort"], endpoint["port"]}
    used |= {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert used == set(ports)
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(ports["http"])


def policies(variant: str, labels: dict[str, str]) -> list[Object]:
    """The network policies that count for a pod."""
    named = found(VARIANTS[variant], "NetworkPolicy")
    return [one for one in named if one["spec"]["podSelector"]["matchLabels"].items() <= labels.items()]


@variants
def test_the_port_is_open_to_few(variant: str) -> None:
    labels = pod_of(VARIANTS[variant])["metadata"]["labels"]
    (api,) = (one for one in policies(variant, labels) if one["metadata"]["name"] == labels["app.kubernetes.io/name"])
    assert api["spec"]["policyTypes"] == ["Ingress"], "where Kafka and the targets are is not known here"
    (rule,) = api["spec"]["ingress"]
    assert rule["from"], "from nobody is from everybody"
    (container,) = pod_of(VARIANTS[variant])["spec"]["containers"]
    assert [port["port"] for port in rule["ports"]] == [port["name"] for port in container["ports"]]


def test_driver_and_executors_reach_each_other() -> None:
    executor = yaml.safe_load(config_map(VARIANTS["spark"], "ticdc-reconciler-executors")["executor.yaml"])
    pods = [pod_of(VARIANTS["spark"])["metadata"]["labels"], executor["metadata"]["labels"]]
    for receiver, sender in (pods, reversed(pods), [pods[1], pods[1]]):
        rules = [rule for one in policies("spark", receiver) for rule in one["spec"]["ingress"] if "ports" not in rule]
        peers = [peer["podSelector"]["matchLabels"] for rule in rules for peer in rule["from"]]
        assert any(peer.items() <= sender.items() for peer in peers)


@variants
def test_probes_and_scrapes_ask_for_what_there_is(variant: str, tmp_path: Path) -> None:
    client = Client(application(Fleet(tmp_path, tmp_path), Access("", loopback=True)), {})
    pod = pod_of(VARIANTS[variant])
    (container,) = pod["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert client.get(container[probe]["httpGet"]["path"]).status_code == 200
    (endpoint,) = MONITOR["spec"]["podMetricsEndpoints"]
    assert endpoint["path"] == pod["metadata"]["annotations"]["prometheus.io/path"]
    assert client.get(endpoint["path"]).status_code == 200
    credentials = endpoint["authorization"]["credentials"]
    assert (credentials["name"], credentials["key"] in SECRET["stringData"]) == (SECRET["metadata"]["name"], True)
    job = re.search(r'up\{job="([\w-]+)"\}', (DOCKER / "prometheus" / "alerts.yml").read_text())
    assert job is not None
    assert pod["metadata"]["labels"][MONITOR["spec"]["jobLabel"]] == job[1]


@variants
def test_what_is_mounted_exists(variant: str) -> None:
    pod = pod_of(VARIANTS[variant])["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    maps = {one["metadata"]["name"] for one in found(VARIANTS[variant], "ConfigMap")}
    assert {v["configMap"]["name"] for v in volumes.values() if "configMap" in v} == maps
    assert {v["secret"]["secretName"] for v in volumes.values() if "secret" in v} == {SECRET["metadata"]["name"]}
    accounts = {one["metadata"]["name"] for one in found(VARIANTS[variant], "ServiceAccount")}
    assert pod["serviceAccountName"] in accounts
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    files = {place for one in found(VARIANTS[variant], "ConfigMap") for place in one["data"].values()}
    named = set(re.findall(r"file:(/run/secrets/[\w/-]+)", "".join(files) + json.dumps(container["env"])))
    assert named == {f"{places['secrets']}/{key}" for key in SECRET["stringData"]}


@variants
def test_the_command_line_is_one_and_the_image_ours(variant: str) -> None:
    pod = pod_of(VARIANTS[variant])["spec"]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    words = container["args"]
    check_command_line(words[2:])
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert words[words.index("serve") + 1] == places["changefeeds"]
    (service,) = found(VARIANTS[variant], "Service")
    name, space = service["metadata"]["name"], service["metadata"]["namespace"]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--allow-host"] == [name, f"{name}.{space}.svc"]
    code = "".join(path.read_text() for path in (ROOT / "consumer").rglob("*.py"))
    text = "".join(config_map(VARIANTS[variant], "ticdc-reconciler-changefeeds").values())
    assert all(f'"{one["name"]}"' in code or f"${{{one['name']}}}" in text for one in container["env"])


@variants
def test_changefeeds_are_valid(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"\$\{(\w+)\}", json.dumps(VARIANTS[variant])):
        monkeypatch.setenv(name, "10.0.0.7")
    folder = laid_out(VARIANTS[variant], tmp_path)
    assert [path.name for path in sorted(folder.glob("*.toml"))] == ["_serve.toml", "shop.toml"]
    assert load_config(folder / "shop.toml").changefeed == "shop"
    spark = load_settings(folder).spark
    assert spark.master == {"base": "local[2]", "spark": "k8s://https://kubernetes.default.svc:443"}[variant]


@variants
def test_nobody_is_root(variant: str) -> None:
    pod = pod_of(VARIANTS[variant])["spec"]
    user = re.search(r"^USER (\d+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, int(user[1]))
    assert pod["containers"][0]["securityContext"] == RESTRICTED
    assert {"requests", "limits"} == set(pod["containers"][0]["resources"])
    assert pod["terminationGracePeriodSeconds"] > 30
    assert pod["automountServiceAccountToken"] is (variant == "spark"), "only who makes pods talks to Kubernetes"


def test_there_is_no_real_secret() -> None:
    assert all("REPLACE" in value or "@" not in value for value in SECRET["stringData"].values())
    assert not any(found(manifests, "Secret") for manifests in VARIANTS.values()), "it would replace the real one"
    assert len(SECRET["stringData"]["token"]) >= 16


def test_executors_are_made_from_our_image_by_who_may() -> None:
    manifests = VARIANTS["spark"]
    spark = tomllib.loads(config_map(manifests, "ticdc-reconciler-changefeeds")["_serve.toml"])["spark"]
    template = yaml.safe_load(config_map(manifests, "ticdc-reconciler-executors")["executor.yaml"])
    (container,) = template["spec"]["containers"]
    validate(template | {"spec": {**template["spec"], "containers": [container]}})
    assert container["securityContext"] == RESTRICTED
    assert template["spec"]["securityContext"] == pod_of(manifests)["spec"]["securityContext"]
    assert spark["spark.kubernetes.container.image"] == IMAGE
    assert spark["spark.kubernetes.namespace"] == SECRET["metadata"]["namespace"]
    places = {m["name"]: m["mountPath"] for m in pod_of(manifests)["spec"]["containers"][0]["volumeMounts"]}
    assert spark["spark.kubernetes.executor.podTemplateFile"] == f"{places['executors']}/executor.yaml"
    (role,), (binding,) = found(manifests, "Role"), found(manifests, "RoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject["name"] == pod_of(manifests)["spec"]["serviceAccountName"]
    assert {"pods", "configmaps"} <= set(role["rules"][0]["resources"])
