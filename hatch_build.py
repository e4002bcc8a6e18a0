"""Build hook of hatchling that records the commit which a package is built from.

A source distribution and a wheel get the file `resolver/commit.txt`. Its content is, in this order,
that of the file in the source (a source distribution that was unpacked), the environment variable
SOURCE_COMMIT (the image is built without the history), or the commit of the git checkout.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from resolver.config.version import COMMIT_FILE, checkout_commit


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the file with the commit to what is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, unless the source has it or the build is that of an editable install."""
        if version == "editable":
            return
        root = Path(self.root)
        file = root / "resolver" / COMMIT_FILE
        if not file.exists():
            commit = os.environ.get("SOURCE_COMMIT") or checkout_commit(root)
            if not commit:
                return
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / COMMIT_FILE
            file.write_text(f"{commit}\n", encoding="ascii")
        # In both cases in this way, which decides the position in the archive.
        build_data["force_include"][str(file)] = f"resolver/{COMMIT_FILE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the temporary file."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
