"""Tests of scripts/sbom.py: the bill of materials of an image."""

import io
import json
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import docker
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts.sbom import bill_of_materials, files_of

ROOT = Path(__file__).parents[2]
FILES = {
    "usr/lib/os-release": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n',
    "var/lib/dpkg/status": (
        "Package: libstdc++6\nStatus: install ok installed\nArchitecture: amd64\n"
        "Version: 1:12.2.0+b1\nDescription: a library\n with a second line\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n"
    ),
    "opt/venv/lib/python3.12/site-packages/Flask_X-3.1.dist-info/METADATA": (
        "Metadata-Version: 2.4\nName: Flask_X\nVersion: 3.1\n"
        "License-Expression: BSD-3-Clause\n\n# Hi\n"
    ),
    "srv/METADATA": "Name: no distribution\n",
}


def export(files: dict[str, str]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    packed.seek(0)
    return packed


def test_it_lists_what_is_installed_by_debian_and_by_python() -> None:
    made_at = datetime(2026, 1, 2, tzinfo=UTC)
    bill = bill_of_materials("resolver:1.2.3", files_of(export(FILES)), made_at)
    assert [component["purl"] for component in bill["components"]] == [
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0%2Bb1?arch=amd64&distro=debian-12",
        "pkg:pypi/flask-x@3.1",
    ]
    assert bill["components"][1]["licenses"] == [{"expression": "BSD-3-Clause"}]
    assert bill["metadata"]["timestamp"] == "2026-01-02T00:00:00+00:00"
    assert validation_error(json.dumps(bill)) is None


def validation_error(text: str) -> str | None:
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return str(found) if found else None


@pytest.mark.engine
def test_the_bill_of_an_image_is_valid(engine: docker.DockerClient, python_image: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/sbom.py", python_image],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert validation_error(done.stdout) is None
    names = {component["name"] for component in json.loads(done.stdout)["components"]}
    assert {"git", "libc6", "pip"} <= names
