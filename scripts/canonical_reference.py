"""The address of Resolver's Action and image, made from `[project.urls]` in pyproject.toml.

`make docs` writes it into every page and every example. A fork that publishes its own may change
it there; scripts/release.sh does so for each release. `resolver init` needs no address: it finds
where it was installed from.
"""

import re
import tomllib
from pathlib import Path

from resolver import __version__

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

REPOSITORY: str = _PROJECT["urls"]["Repository"].split("/", 3)[3]
"""Where the Action is published, as OWNER/NAME on GitHub."""

ACTION = f"{REPOSITORY}@v{__version__}"
CALLED_WORKFLOW = f"{REPOSITORY}/.github/workflows/resolve.yml@v{__version__}"
# The names of images are in lower case; the placeholder is kept as it is.
_IMAGE_NAME = REPOSITORY if REPOSITORY.startswith("OWNER/") else REPOSITORY.lower()
IMAGE = f"ghcr.io/{_IMAGE_NAME}:{__version__}"

_VERSION = r"v?\d+\.\d+\.\d+"
_OWNER = r"[A-Za-z0-9][A-Za-z0-9-]*"
_WRITTEN = (
    (rf"\b{_OWNER}/resolver@{_VERSION}", ACTION),
    (rf"\b{_OWNER}/resolver/\.github/workflows/resolve\.yml@{_VERSION}", CALLED_WORKFLOW),
    (rf"\bghcr\.io/{_OWNER}/resolver:{_VERSION}", IMAGE),
    (rf"\bgithub\.com/{_OWNER}/resolver@{_VERSION}", f"github.com/{ACTION}"),
)


def with_canonical_references(text: str) -> str:
    """Return a page with the current address of the Action and the image in place of any other."""
    for written, current in _WRITTEN:
        text = re.sub(written, current, text)
    return text
