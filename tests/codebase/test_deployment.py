"""The files that deploy the server: valid by the published schemas, and what each must have."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import load_settings

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy/kubernetes").rglob("*.yaml"))
KUBERNETES = "1.33"


def compose() -> dict[str, Any]:
    """The compose file, with its anchors merged."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


def documents() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{path.name} {document['kind']}", document)
        for path in MANIFESTS
        for document in yaml.safe_load_all(path.read_text())
    ]


def pods() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each pod's spec with its one container."""
    for _, document in documents():
        spec = document.get("spec", {})
        if template := spec.get("template"):
            [container] = template["spec"]["containers"]
            yield template["spec"], container


def test_the_compose_file_follows_the_specification() -> None:
    schema = files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    jsonschema.validate(compose(), json.loads(schema.read_text()))


def test_the_compose_file_has_a_server_and_two_workers_with_folders_of_their_own() -> None:
    services = compose()["services"]
    commands = {name: service.get("command", "").split()[:1] for name, service in services.items()}
    assert commands == {
        "web": ["serve"],
        "worker-1": ["worker"],
        "worker-2": ["worker"],
        "database": [],
    }
    folders = [
        volume.partition(":")[0]
        for service in services.values()
        for volume in service["volumes"]
        if not volume.startswith("/")
    ]
    # The runs are what the processes have in common.
    assert sorted(folders) == sorted([*compose()["volumes"], "runs", "runs"])
    environment = services["web"]["environment"]
    assert f"runs:{environment['RESOLVER_RUN_STORE']}" in services["worker-1"]["volumes"]
    assert "/var/run/docker.sock" not in json.dumps(services["web"])


def test_each_variable_of_the_compose_file_is_in_the_example_of_its_environment() -> None:
    names = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text()))
    examples = {
        name: (ROOT / name).read_text() for name in (".env.example", "resolver.env.example")
    }
    assert names == set(re.findall(r"^(\w+)=", examples[".env.example"], re.MULTILINE))
    settings = dict(re.findall(r"^(\w+)=(.*)", examples["resolver.env.example"], re.MULTILINE))
    del settings["RESOLVER_APP_PRIVATE_KEY"]  # which has to be a key
    environment = {name: value or "1" for name, value in settings.items()}
    assert load_settings({}, environment).app_id
    assert read_server_variables(environment).webhook_secret is not None


def test_the_manifests_name_each_other() -> None:
    found = {(document["kind"], document["metadata"]["name"]) for _, document in documents()}
    for pod, container in pods():
        sources = {(kind, ref["name"]) for env in container["envFrom"] for kind, ref in env.items()}
        assert sources == {("configMapRef", "resolver"), ("secretRef", "resolver")}
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }
        assert container["workingDir"] in {
            mount["mountPath"] for mount in container["volumeMounts"]
        }
    [ingress] = [document for _, document in documents() if document["kind"] == "Ingress"]
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert ("Service", path["backend"]["service"]["name"]) in found
    assert {("ConfigMap", "resolver"), ("Secret", "resolver")} <= found


@pytest.mark.parametrize(("name", "document"), documents(), ids=[name for name, _ in documents()])
def test_a_manifest_is_valid(name: str, document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_every_pod_is_confined_and_bounded() -> None:
    found = list(pods())
    assert len(found) == 2
    for pod, container in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"]["cpu"]
        assert "hostPath" not in json.dumps(pod)


def test_every_deployment_has_probes_and_a_disruption_budget() -> None:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for _, document in documents():
        kinds.setdefault(document["kind"], []).append(document)
    budgets = [budget["spec"]["selector"] for budget in kinds["PodDisruptionBudget"]]
    assert [deployment["spec"]["selector"] for deployment in kinds["Deployment"]] == budgets
    for deployment in kinds["Deployment"]:
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert {"startupProbe", "livenessProbe"} <= set(container)
    [web] = [
        deployment
        for deployment in kinds["Deployment"]
        if deployment["metadata"]["name"] == "resolver-web"
    ]
    probes = web["spec"]["template"]["spec"]["containers"][0]
    assert probes["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"
