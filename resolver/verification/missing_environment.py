"""Says why no test of a check ran: what the environment lacks, and what would give it.

The text of an output only explains an execution in which no test ran. It decides no verdict.
"""

import re

from resolver.config.templates import render
from resolver.models.verification import CheckExecution, MissingEnvironment, Remedy
from resolver.trace.plain import one_line

MAX_READ = 200_000
"""Number of characters at the end of an output that are read."""

_PROGRAMS = (
    r"(?:python3?|node|npm|npx|pnpm|yarn|bun|go|cargo|java|mvn|gradle|dotnet|ruby|bundle|php|make"
    r"|cmake|ctest)"
)
_SIGNS: tuple[tuple[Remedy, str], ...] = (
    ("egress", r"temporary failure in name resolution|could not resolve host|getaddrinfo|dial tcp"
     r"|name or service not known|\benotfound\b|eai_again|no such host|network is unreachable"
     r"|failed to establish a new connection|could not transfer artifact|tunnel connection failed"
     r"|failed to (?:download|fetch)\b"),
    ("setup", r"no module named|cannot find (?:module|package)"
     r"|err_module_not_found|could not find (?:gem|a version)|gemnotfound|missing go\.sum"
     r"|no required module provides|can't find crate|distributionnotfound"),
    ("image", rf"(?:^|[\s/:'\"]){_PROGRAMS}['\"]?:? (?:command )?not found\b"),
    ("setup", r"\bimporterror\b|\bnot found\b|no such file or directory.*(?:bin/|node_modules)"),
)  # fmt: skip
"""Lines that name what is missing, the cause before its effects: what can't be downloaded is not
installed either."""


def find_missing_environment(
    execution: CheckExecution, suggestion: str | None = None
) -> MissingEnvironment | None:
    """Return what an execution lacked, None if tests ran or if it failed for another reason.

    suggestion: the usual set-up of the project, if it was not executed.
    """
    ran = any(case.status in {"passed", "failed"} for case in execution.cases)
    if ran or execution.exit_code in {0, None}:
        return None
    texts = [execution.output, *(case.message for case in execution.cases)]
    lines = "\n".join(texts)[-MAX_READ:].splitlines()
    for remedy, pattern in _SIGNS:
        for line in lines:
            if re.search(pattern, line[:1_000], re.IGNORECASE):
                return _missing(one_line(line.removeprefix("E "), 200), remedy, suggestion)
    return None


def _missing(line: str, remedy: Remedy, suggestion: str | None) -> MissingEnvironment:
    found = MissingEnvironment(line=line, remedy=remedy, suggestion=suggestion)
    marked = {"suggestion": f"`setup: {suggestion}`"} if suggestion else {}
    text = render("verification/no_test_ran.txt.j2", missing=found.model_copy(update=marked))
    return found.model_copy(update={"text": text.strip()})
