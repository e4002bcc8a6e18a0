"""Parts that a machine may lack: what needs one is skipped, and a run's last lines count it.

In CI a skipped test is a failed one (tests/conftest.py).
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

_MISSING = re.compile(r"(?:Skipped: )?needs (.+?): ")


def skip_without(part: str, detail: str) -> NoReturn:
    """Skip the running test, or all that use the running fixture."""
    pytest.skip(f"needs {part}: {detail}")


def summarize_missing(reasons: Iterable[str]) -> list[str]:
    """Return lines about the tests that were skipped for missing parts.

    reasons: why tests were skipped.
    """
    parts = Counter(found[1] for reason in reasons if (found := _MISSING.match(reason)))
    if not parts:
        return []
    counts = ", ".join(f"{count} for {part}" for part, count in parts.most_common())
    return [
        f"{parts.total()} tests were skipped, because parts are missing here: {counts}.",
        "On Debian 12, `sudo make parts` installs them.",
    ]


@pytest.fixture(scope="session")
def namespaces() -> None:
    """The kernel lets a sandbox on this machine have namespaces, as few containers do."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    if tried.returncode:
        skip_without("namespaces (outside a container)", tried.stderr.strip())
