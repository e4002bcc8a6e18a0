"""What the programs that the agent runs find in their environment, and where outputs are kept."""

import itertools
import os
import pwd
from collections.abc import Mapping
from typing import Final

from .spool import Spool

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PLAIN_TERMINAL: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # An editor that opens would wait for somebody who is not there.
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    # Without it Python keeps its output back when it goes to a pipe: a timeout would lose it.
    "PYTHONUNBUFFERED": "1",
    # A repository without a .gitignore for them would get __pycache__ folders in its change.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "MPLBACKEND": "Agg",
}


def shell_environment(
    own: Mapping[str, str], keep: bool, tools: str | None, extra: Mapping[str, str], bash: str
) -> dict[str, str]:
    """The variables of bash and the kernel.

    own: the server's environment. keep: pass all of it on (a container's: made by its image);
    otherwise only where programs, home and temporary files are. tools: folder after the image's
    PATH. extra: wins over all.
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
    """Name of the user, or its number where the image has no account for it."""
    return _account()[0]


def _account() -> tuple[str, str]:
    try:
        account = pwd.getpwuid(os.getuid())
        return account.pw_name, account.pw_dir
    except KeyError:
        return str(os.getuid()), "/tmp"


class Outputs:
    """Makes the spool of each output, with a file name of its own in the scratch folder."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self._folder = os.path.join(scratch, "output")
        self._numbers = itertools.count(1)

    def __call__(self) -> Spool:
        return Spool(os.path.join(self._folder, f"{next(self._numbers):06d}.txt"))
