"""The files that deploy the server: valid by the published schemas, and what each must have."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy/kubernetes").rglob("*.yaml"))
KUBERNETES = "1.33"


def compose() -> dict[str, Any]:
    """The compose file, with its anchors merged."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


def documents() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text())


def pods() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each pod's spec with its one container."""
    for document in documents():
        spec = document.get("spec", {})
        if template := spec.get("template"):
            [container] = template["spec"]["containers"]
            yield template["spec"], container


def test_the_compose_file_follows_the_specification() -> None:
    schema = files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    jsonschema.validate(compose(), json.loads(schema.read_text()))


def test_the_manifests_are_valid() -> None:
    for document in documents():
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
