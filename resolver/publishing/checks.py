"""Whether GitHub checks what a run has made public."""

from resolver.forge.base import Forge
from resolver.forge.github.forge import ACTIONS_LOGIN
from resolver.record import Record
from resolver.templates import render


def told_of_checks(record: Record, forge: Forge) -> None:
    """Warn where no workflow starts on the change: GitHub starts none for the token of a job, so
    that no workflow starts itself.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    public = record.publication
    if public.branch and not public.repeated and forge.whoami() == ACTIONS_LOGIN:
        record.warnings.append(render("run/no_checks.md.j2").strip())
