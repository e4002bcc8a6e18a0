"""Reads the pull request template that an owner's repositories without one of their own share.

It is in the public repository `.github` of the owner. Source:
https://docs.github.com/communities/setting-up-your-project-for-healthy-contributions/creating-a-default-community-health-file
"""

import logging

import github
from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.resources import list_repository_folder
from resolver.models.repository import (
    DEFAULTS_REPOSITORY,
    FOLDERS,
    MAX_TEMPLATE_BYTES,
    template_path,
)

logger = logging.getLogger("resolver.github")


def read_owner_template(access: GitHubAccess, repository: str) -> str:
    """Return the template of the repository's owner, "" if there is none. Never raises.

    It sends a single request if the owner has no `.github` repository.
    """
    owner, _, name = repository.partition("/")
    if name.casefold() == DEFAULTS_REPOSITORY:
        return ""
    shared = f"{owner}/{DEFAULTS_REPOSITORY}"
    hasty_access = access.with_short_timeouts()
    try:
        with hasty_access.wrap_errors(f"read the template of {shared}", "contents: read"):
            return _read_template(hasty_access.client().get_repo(shared))
    except ForgeError as error:
        logger.warning("%s", error.what)
        return ""


def _read_template(repository: Repository) -> str:
    """Return the template in the repository, "" if there is none.

    A repository that doesn't exist, or is private, has none: GitHub uses only public ones.
    """
    try:
        if repository.complete().private:
            return ""
    except github.UnknownObjectException:
        return ""
    files = list(list_repository_folder(repository, ""))
    for folder in [file for file in files if file.type == "dir" and file.path.lower() in FOLDERS]:
        files += list_repository_folder(repository, folder.path)
    path = template_path([file.path for file in files if file.type == "file"])
    entry = next((file for file in files if file.path == path), None)
    if entry is None or entry.size > MAX_TEMPLATE_BYTES:
        return ""
    try:
        text = entry.decoded_content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text
