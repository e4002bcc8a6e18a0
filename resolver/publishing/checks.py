"""Reports the checks of a published change: the verification, and whether GitHub starts any."""

import logging

from resolver.config.templates import render
from resolver.errors import ForgeError
from resolver.github.comments.report import Report
from resolver.github.forge import Forge
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.models.run import Publication

logger = logging.getLogger("resolver.publishing")


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning if GitHub starts no workflow for the published change.

    GitHub starts none for a push with the token of a job, so that workflows don't trigger
    themselves.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()


def publish_verification(publication: Publication, report: Report, forge: Forge) -> None:
    """Create a check run on the published commit.

    Without the permission for it there is none. The pull request shows the same.
    """
    if publication.commit is None or publication.repeated or publication.repository:
        return
    if publication.how in {"patch", "unchanged"} or report.verification is None:
        return
    try:
        forge.publish_check_run(report, publication.commit)
    except ForgeError as error:
        logger.info("%s", error.what)
