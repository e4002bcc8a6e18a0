"""Prints the software bill of materials of an image, as CycloneDX JSON: `scripts/sbom.py IMAGE`.

It lists the Debian packages and the Python distributions that the image's files record. Nothing of
the image is executed, and nothing but Python and Docker is needed, because a job that can push
images should install no packages.

Source: https://cyclonedx.org/docs/1.6/json/
"""

import json
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.parse import quote

DEBIAN_STATUS = "var/lib/dpkg/status"
OS_RELEASE = "usr/lib/os-release"


def files_of(export: IO[bytes]) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield path and text of the files that record packages, from the tar file of a container."""
    with tarfile.open(fileobj=export, mode="r|") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            recorded = member.name in {DEBIAN_STATUS, OS_RELEASE} or (
                path.name == "METADATA" and path.parent.suffix == ".dist-info"
            )
            if recorded and member.isfile():
                content = tar.extractfile(member)
                assert content is not None
                yield path, content.read().decode()


def python_component(text: str) -> dict[str, Any]:
    """Return the component of a Python distribution, from its METADATA."""
    fields = HeaderParser().parsestr(text)
    purl = f"pkg:pypi/{quote(fields['Name'].lower().replace('_', '-'))}@{quote(fields['Version'])}"
    found = component(fields["Name"], fields["Version"], purl)
    if license_expression := fields["License-Expression"]:
        found["licenses"] = [{"expression": license_expression}]
    return found


def debian_components(text: str, distribution: str) -> Iterator[dict[str, Any]]:
    """Yield the components of dpkg's status file that are installed."""
    for paragraph in text.split("\n\n"):
        fields: Message = HeaderParser().parsestr(paragraph)
        if not (fields["Status"] or "").endswith(" installed"):
            continue
        name, version = fields["Package"], fields["Version"]
        qualifiers = f"arch={fields['Architecture']}" + (
            f"&distro={quote(distribution)}" if distribution else ""
        )
        yield component(
            name, version, f"pkg:deb/debian/{quote(name)}@{quote(version)}?{qualifiers}"
        )


def component(name: str, version: str, purl: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }


def distribution_of(os_release: str) -> str:
    """Return the distribution as package URLs name it: `debian-12`."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    parts = [values.get(key, "").strip('"') for key in ("ID", "VERSION_ID")]
    return "-".join(filter(None, parts))


def bill_of_materials(
    image: str, files: Iterable[tuple[PurePosixPath, str]], made_at: datetime
) -> dict[str, Any]:
    """Return the bill of materials of the image that has these files."""
    python: list[dict[str, Any]] = []
    texts = {DEBIAN_STATUS: "", OS_RELEASE: ""}
    for path, text in files:
        if str(path) in texts:
            texts[str(path)] = text
        else:
            python.append(python_component(text))
    debian = debian_components(texts[DEBIAN_STATUS], distribution_of(texts[OS_RELEASE]))
    components = {entry["bom-ref"]: entry for entry in [*debian, *python]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": made_at.isoformat(timespec="seconds"),
            "component": {"type": "container", "bom-ref": image, "name": image},
        },
        "components": [components[key] for key in sorted(components)],
    }


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main() -> None:
    [image] = sys.argv[1:]
    container = docker("create", image, "true")
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            assert export.stdout is not None
            found = bill_of_materials(image, files_of(export.stdout), datetime.now(UTC))
            export.stdout.read()  # what tar pads its end with, so that docker can finish
        if export.returncode:
            sys.exit(f"docker could not export {image}")
    finally:
        docker("rm", container)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
