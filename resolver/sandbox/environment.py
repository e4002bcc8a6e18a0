"""The environment variables of the agent's programs, the files that hold their output, and the
browser that is installed."""

import itertools
import os
import pwd
import shutil
from collections.abc import Mapping
from typing import Final

from .spool import Spool

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH if the server's environment has none."""

PLAIN_TERMINAL: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # An editor would wait for input that never comes.
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    # Otherwise Python buffers its output to a pipe, and a timeout would lose it.
    "PYTHONUNBUFFERED": "1",
    # In a repository that does not ignore __pycache__, these folders would get into the change.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "MPLBACKEND": "Agg",
}
"""Variables that keep programs from using colours, pagers, editors and prompts."""


BROWSER_SERVER: Final = "playwright-mcp"
"""Name of Playwright's MCP server on PATH."""

CHROMIUM_NAMES: Final = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
    "headless_shell", "chrome-headless-shell", "chrome",
)  # fmt: skip
"""Names of Chromium on PATH, in the order in which they are tried."""


def shell_environment(
    server_environment: Mapping[str, str],
    keep_all: bool,
    tools: str | None,
    extra: Mapping[str, str],
    bash: str,
) -> dict[str, str]:
    """Return the environment variables of bash and of the IPython kernel.

    server_environment: the server's environment.
    keep_all: pass all of it on, as is right in a container, whose image defines it. Otherwise only
        PATH, HOME, LANG and TMPDIR are taken from it.
    tools: folder to append to PATH.
    extra: variables that override all others.
    """
    user, home = _account()
    home = server_environment.get("HOME") or home
    variables = {} if not keep_all else dict(server_environment)
    path = server_environment.get("PATH") or DEFAULT_PATH
    temporary = server_environment.get("TMPDIR") or "/tmp"
    variables |= {
        "PATH": f"{path}:{tools}" if tools else path,
        "HOME": home if os.path.isdir(home) else "/tmp",
        "USER": user,
        "LOGNAME": user,
        "SHELL": bash,
        "LANG": server_environment.get("LANG") or "C.UTF-8",
        "TMPDIR": temporary if os.path.isdir(temporary) else "/tmp",
    }
    return variables | PLAIN_TERMINAL | dict(extra)


def user_name() -> str:
    """Return the name of the user, or the uid if the image has no account for it."""
    return _account()[0]


def _account() -> tuple[str, str]:
    try:
        account = pwd.getpwuid(os.getuid())
        return account.pw_name, account.pw_dir
    except KeyError:
        return str(os.getuid()), "/tmp"


def find_browser(environment: Mapping[str, str]) -> str:
    """Return the first known Chromium on PATH; "" without one, or without the server for it."""
    path = environment.get("PATH")
    if shutil.which(BROWSER_SERVER, path=path) is None:
        return ""
    found = (shutil.which(name, path=path) for name in CHROMIUM_NAMES)
    return next(filter(None, found), "")


class Outputs:
    """Creates the spool of each output, with a file of its own in the scratch folder."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self._folder = os.path.join(scratch, "output")
        self._numbers = itertools.count(1)

    def __call__(self) -> Spool:
        return Spool(os.path.join(self._folder, f"{next(self._numbers):06d}.txt"))
