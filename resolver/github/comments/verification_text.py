"""Prepares the verification of a change for the templates of comments and pull requests.

Names of tests, commands and outputs come out of sandboxes; the templates escape them.
"""

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from resolver.github.comments.report import Report
from resolver.github.comments.templates import code, join, safe
from resolver.github.text.markdown import fence, shorten_text
from resolver.models.verification import UNFINISHED, ChangedExpectation

_PAGE = re.compile(r"https?://[^\s<>()]+")

MAX_NAMES = 10
"""Maximum number of tests that are named in one list."""

MAX_LINES = 5
"""Maximum number of lines that are shown of one part of a test."""


def verification_values(report: Report, output_limit: int) -> dict[str, Any]:
    """Return what the templates read of the verification; it is None if there was none.

    output_limit: number of characters of a failing check's output that are shown.
    """
    verification = report.verification or (UNFINISHED if report.patch else None)
    if verification is None or verification.reason == "no_change":
        return {"verification": None}
    checks = verification.checks
    head = report.patch.commit or "" if report.patch else ""
    # The page of a commit in a fork is known by the publication only.
    head_url = None if report.publication.repository else report.repository_url
    former = {name for check in checks for name in check.former}
    tests: dict[str, list[str]] = {"reproduction": list(verification.reproduction)}
    for kind in ("broken", "missing", "former", "failing", "known", "useless", "not_run"):
        names = dict.fromkeys(name for check in checks for name in getattr(check, kind))
        is_result = kind in {"broken", "missing"}
        tests[kind] = [name for name in names if not (is_result and name in former)]
    return {
        "verification": verification,
        "tests": tests,
        "named": _named,
        "expectations": _expectations(verification.expectations[:MAX_NAMES]),
        "max_names": MAX_NAMES,
        "output_limit": output_limit,
        "base_commit": _commit(report.base, _page(report.repository_url, report.base)),
        "head_commit": _commit(head, report.publication.commit_url or _page(head_url, head)),
    }


def _named(names: Sequence[str]) -> Markup:
    """Return the first names, and the number of the others."""
    left_out = len(names) - MAX_NAMES
    more = safe(f" and {left_out} more") if left_out > 0 else safe("")
    return join([code(name) for name in names[:MAX_NAMES]], safe(", ")) + more


def _expectations(parts: Sequence[ChangedExpectation]) -> Markup:
    """Return parts of tests as a diff in a code block; "" if there are none."""
    lines: list[str] = []
    for part in parts:
        lines.append(f"@@ {shorten_text(' '.join(part.path.split()), 200)} @@")
        for sign, text in (("-", part.old), ("+", part.new)):
            shown = [line for line in text.splitlines() if line.strip()][:MAX_LINES]
            lines += [f"{sign} {shorten_text(line, 100)}" for line in shown]
    return safe(fence("\n".join(lines), "diff") if lines else "")


def _page(repository_url: str | None, commit: str) -> str | None:
    return f"{repository_url}/commit/{commit}" if repository_url and commit else None


def _commit(commit: str, url: str | None) -> Markup:
    """Return the first digits of a commit, with a link to its page if it has one."""
    label = code(commit[:12])
    return safe(f"[{label}]({url})") if label and _PAGE.fullmatch(url or "") else label
