"""Records what the checks of the suite do whose runners are not installed everywhere.

Usage: python -m tests.verification.suite.record LANGUAGE...

The runners must be on PATH. `SUITE_NODE_MODULES` names a folder with jest, mocha, vitest and bats.
"""

import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.models.verification import ProjectCheck
from resolver.verification.discovery import discover_checks
from resolver.verification.instrumentation import instrument
from resolver.verification.project_tree import ProjectTree
from tests.verification.suite.local_sandbox import LocalSandbox, read_report_files
from tests.verification.suite.recordings import RecordedExecution, read_recordings, recording_file
from tests.verification.suite.repositories import REPOSITORIES
from tests.verification.suite.repository import Files, tree_id

SECONDS = 300.0
PASSED_ON = ("PATH", "HOME", "GOCACHE", "GOFLAGS", "CARGO_HOME", "RUSTUP_HOME", "MAVEN_OPTS")
_PROPERTIES = re.compile(r"\s*<properties>.*?</properties>", re.DOTALL)


def record(files: Files, check: ProjectCheck) -> RecordedExecution:
    """Execute a check on a tree and return what it did."""
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        sandbox = LocalSandbox(Path(folder) / "box", files, variables)
        if "package.json" in files and (modules := os.environ.get("SUITE_NODE_MODULES")):
            (Path(sandbox.root) / "node_modules").symlink_to(modules)
        reports = f"{sandbox.scratch}/reports"
        Path(reports).mkdir()
        extended = instrument(check, reports)
        lines = ["set -eo pipefail"]
        lines += [f"export {k}={shlex.quote(v)}" for k, v in extended.environment.items()]
        done = sandbox.execute(
            CmdRun(command="\n".join([*lines, extended.command]), timeout=SECONDS)
        )
        assert isinstance(done, CmdOutput)
        assert done.exit_code is not None

        def plain(text: str) -> str:
            text = text.replace(reports, "{reports}").replace(sandbox.root, "{root}")
            return _PROPERTIES.sub("", text)

        found = read_report_files(sandbox, extended.report).items()
        return RecordedExecution(
            exit_code=done.exit_code,
            output=plain(done.content)[-4_000:],
            reports={plain(path): plain(content.decode()) for path, content in found},
        )


def main(languages: list[str]) -> None:
    """Record the trees of these languages that have no recording yet, and drop unused ones."""
    for language in languages:
        known, wanted = read_recordings(language), dict[str, list[RecordedExecution]]()
        for repository in REPOSITORIES:
            if repository.language != language or not repository.is_recorded:
                continue
            [check] = discover_checks(ProjectTree.from_files(repository.base)).checks
            for name, files in repository.trees.items():
                key = tree_id(files)
                if key not in wanted:
                    wanted[key] = known.get(key) or [record(files, check)]
                    print(language, repository.name, name, wanted[key][0]["exit_code"], flush=True)
        text = json.dumps(wanted, indent=1, sort_keys=True)
        recording_file(language).write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
