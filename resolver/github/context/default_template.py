"""Reads the default pull request template from the `.github` repository of an owner.

It applies to all repositories of the owner that have no template of their own.

Source:
https://docs.github.com/communities/setting-up-your-project-for-healthy-contributions/creating-a-default-community-health-file
"""

import logging

import github
from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.report import Report
from resolver.models.conventions import FOLDERS, template_path

logger = logging.getLogger("resolver.github")

REPOSITORY = ".github"
"""Name of the repository that contains an owner's default files."""

LARGEST = 20_000
"""Maximum size of a template in bytes."""


def with_default_template(access: GitHubAccess, report: Report) -> Report:
    """Return the report, with the owner's template if its repository has none. Never raises.

    It sends a single request if the owner has no `.github` repository.
    """
    owner, _, name = report.trigger.repository.partition("/")
    if report.conventions.template.strip() or name.casefold() == REPOSITORY:
        return report
    hasty = access.in_haste()
    try:
        with hasty.asking(f"read the template of {owner}/{REPOSITORY}", "contents: read"):
            template = _template(hasty.client().get_repo(f"{owner}/{REPOSITORY}"))
    except ForgeError as error:
        logger.warning("%s", error.what)
        return report
    conventions = report.conventions.model_copy(update={"template": template})
    return report.model_copy(update={"conventions": conventions})


def _template(repository: Repository) -> str:
    """Return the template in the repository, "" if there is none.

    A repository that doesn't exist, or is private, has none: GitHub uses only public ones.
    """
    try:
        if repository.complete().private:
            return ""
        root = repository.get_contents("")
    except github.UnknownObjectException:
        return ""
    files = list(root) if isinstance(root, list) else []
    for folder in [each for each in files if each.type == "dir" and each.path.lower() in FOLDERS]:
        within = repository.get_contents(folder.path)
        files += within if isinstance(within, list) else []
    path = template_path([each.path for each in files if each.type == "file"])
    found = next((each for each in files if each.path == path), None)
    if found is None or found.size > LARGEST:
        return ""
    try:
        text = found.decoded_content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text
