"""The environment variables of the agent's programs, and the files that hold their output."""

import itertools
import os
import pwd
from collections.abc import Mapping
from typing import Final

from .spool import Spool

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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


def shell_environment(
    own: Mapping[str, str], keep: bool, tools: str | None, extra: Mapping[str, str], bash: str
) -> dict[str, str]:
    """Return the environment variables of bash and of the IPython kernel.

    own: the server's environment.
    keep: pass all of it on, as is right in a container, whose image defines it. Otherwise only
        PATH, HOME, LANG and TMPDIR are taken from it.
    tools: folder to append to PATH.
    extra: variables that override all others.
    """
    user, home = _account()
    home = own.get("HOME") or home
    known = {} if not keep else dict(own)
    path = own.get("PATH") or USUAL_PATH
    temporary = own.get("TMPDIR") or "/tmp"
    known |= {
        "PATH": f"{path}:{tools}" if tools else path,
        "HOME": home if os.path.isdir(home) else "/tmp",
        "USER": user,
        "LOGNAME": user,
        "SHELL": bash,
        "LANG": own.get("LANG") or "C.UTF-8",
        "TMPDIR": temporary if os.path.isdir(temporary) else "/tmp",
    }
    return known | PLAIN_TERMINAL | dict(extra)


def user_name() -> str:
    """Return the name of the user, or the uid if the image has no account for it."""
    return _account()[0]


def _account() -> tuple[str, str]:
    try:
        account = pwd.getpwuid(os.getuid())
        return account.pw_name, account.pw_dir
    except KeyError:
        return str(os.getuid()), "/tmp"


class Outputs:
    """Creates the spool of each output, with a file of its own in the scratch folder."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self._folder = os.path.join(scratch, "output")
        self._numbers = itertools.count(1)

    def __call__(self) -> Spool:
        return Spool(os.path.join(self._folder, f"{next(self._numbers):06d}.txt"))
