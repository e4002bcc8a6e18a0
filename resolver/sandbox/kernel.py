"""The IPython process, which runs one cell after the other. No module imports it; see ipython.py.

Its `%pip` magic installs packages for the session's own Python. That Python has no pip and runs
from a read-only folder, so the pip of the image installs the packages to a separate folder. The
project's environment belongs to the shell and is not touched.
"""

import base64
import importlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from traitlets.config import Config

from . import edit_functions, file_functions
from .file_functions import print_line

NO_PIP_MESSAGE = (
    "Nothing was done: there is no pip here. The shell has the project's own tools and environment."
)
INSTALLED_MESSAGE = "[Installed for this IPython session alone, not for the project.]"


def pip(line: str, folder: str) -> None:
    """Do what `%pip line` asks.

    Installed packages go to `folder`, which is appended to this process's sys.path.
    """
    python = shutil.which("python3") or shutil.which("python")
    if python is None or not _has_pip(python):
        print_line(NO_PIP_MESSAGE)
        return
    arguments = shlex.split(line)
    if arguments[:1] != ["install"]:
        subprocess.run([python, "-m", "pip", *arguments], check=False)
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # pip would choose builds for the Python that runs it, which may have another version than the
    # session's. Source distributions can't be built for another Python, so wheels only.
    wheel_options = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version]
    command = [python, "-m", "pip", *arguments, "--upgrade", "--target", folder, *wheel_options]
    if subprocess.run(command, check=False).returncode == 0:
        if folder not in sys.path:
            sys.path.append(folder)
        importlib.invalidate_caches()
        print_line(INSTALLED_MESSAGE)


def _has_pip(python: str) -> bool:
    process = subprocess.run(
        [python, "-c", "import pip"], stderr=subprocess.DEVNULL, env=os.environ, check=False
    )
    return process.returncode == 0


MAX_IMAGES: Final = 4
"""Maximum number of images of one cell."""

MAX_IMAGE_CHARACTERS: Final = 2 * 1024 * 1024
"""Maximum length of one image in base64."""

NO_PACKAGE_MANAGER_MESSAGE: Final = (
    "Nothing was installed: this session has a Python of its own, for which there is %pip. "
    "Use the shell for the project's environment."
)
"""Answer to the magics of package managers that the session does not have."""


class Images:
    """The images of the running cell, as data URLs."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def add(self, png: bytes | str) -> None:
        """Add a PNG image, given as bytes or in base64.

        If there are too many, or it is too large, print a line that says so.
        """
        data = png if isinstance(png, str) else base64.b64encode(png).decode()
        if len(self.urls) < MAX_IMAGES and len(data) <= MAX_IMAGE_CHARACTERS:
            self.urls.append("data:image/png;base64," + data.replace("\n", ""))
        else:
            file_functions.print_line("[A picture was left out: too many, or too large.]")

    def add_figures(self) -> None:
        """Add the open figures of matplotlib, if the cell has imported it, and close them."""
        plots: Any = sys.modules.get("matplotlib.pyplot")
        if plots is None:
            return
        for number in plots.get_fignums():
            file = io.BytesIO()
            plots.figure(number).savefig(file, format="png")
            self.add(file.getvalue())
        plots.close("all")


class PlainHook(DisplayHook):  # type: ignore[misc]
    """Prints the value of a cell's last expression without a prompt."""

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: Any, _metadata: Any = None) -> None:
        if "image/png" in format_dict:
            self.shell.images.add(format_dict["image/png"])
        else:
            file_functions.print_line(format_dict["text/plain"])


class Publisher(DisplayPublisher):  # type: ignore[misc]
    """Prints what `display` is given: images as images, everything else as text."""

    def publish(self, data: Any, *_: Any, **__: Any) -> None:
        if "image/png" in data:
            self.shell.images.add(data["image/png"])
        else:
            file_functions.print_line(data.get("text/plain", ""))


class Session(InteractiveShell):  # type: ignore[misc]
    """An IPython shell without terminal, history and colours."""

    images = Images()
    displayhook_class = PlainHook
    display_pub_class = Publisher

    def system(self, cmd: str) -> None:
        """Run `!command`; its output goes straight to this process's own."""
        sys.stdout.flush()
        command = self.var_expand(cmd, depth=1)
        process = subprocess.run([os.environ["SHELL"], "-c", command], check=False)
        self.user_ns["_exit_code"] = process.returncode

    system_piped = system_raw = system

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """Run `x = !command` and return its output."""
        command = self.var_expand(cmd, depth=depth + 1)
        process = subprocess.run(
            [os.environ["SHELL"], "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.user_ns["_exit_code"] = process.returncode
        text = process.stdout.decode("utf-8", "replace")
        return SList(text.splitlines()) if split else LSString(text)


def _config() -> Config:
    config = Config()
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Context"
    config.InteractiveShell.cache_size = 100
    config.InteractiveShell.autocall = 0
    config.HistoryManager.enabled = False
    return config


def _make_session(scratch: str) -> Session:
    """Create the IPython session with the functions and magics of this package."""
    os.environ["IPYTHONDIR"] = scratch
    session: Session = Session.instance(config=_config())
    for name in ("conda", "mamba", "micromamba", "uv"):
        session.register_magic_function(
            lambda *_: file_functions.print_line(NO_PACKAGE_MANAGER_MESSAGE), "line", name
        )
    packages = os.path.join(scratch, "packages")
    session.register_magic_function(lambda line: pip(line, packages), "line", "pip")
    edit_functions.begin(os.getcwd(), os.path.dirname(scratch))
    for module in (file_functions, edit_functions):
        session.user_ns.update({name: getattr(module, name) for name in module.__all__})
        session.user_ns_hidden.update(dict.fromkeys(module.__all__))
    session.events.register("post_run_cell", lambda _result: session.images.add_figures())
    return session


def _run(session: Session, code: str) -> dict[str, Any]:
    """Run a cell and return its answer: whether it failed, and its images."""
    session.images = Images()
    try:
        result = session.run_cell(code, store_history=bool(code.strip()))
        return {"error": not result.success, "images": session.images.urls}
    except KeyboardInterrupt:
        # IPython itself reports an interrupt during a cell; this one arrived just after it.
        file_functions.print_line("KeyboardInterrupt")
        return {"error": True, "images": []}


def run_kernel(cells: int, control: int, scratch: str) -> None:
    """Read cells from the descriptor `cells` until its end, and answer each on `control`.

    A request is a line of JSON with `code` and `token`; the answer is JSON followed by NUL, the
    token and NUL. Both descriptors are separate from standard output, so that nothing a cell prints
    can be mistaken for an answer.
    """
    for descriptor in (cells, control):
        os.set_inheritable(descriptor, False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Output to a pipe is block-buffered by default, and would appear after that of stderr and
        # of child processes.
        sys.stdout.reconfigure(line_buffering=True)
    session = _make_session(scratch)
    _hide_package()
    # Only now, so that no file of the repository can shadow a module that IPython imports.
    sys.path.insert(0, "")
    with open(cells, "rb") as requests:
        for line in requests:
            request = json.loads(line)
            # Between cells SIGINT is ignored: an interrupt that arrives late must not end the
            # kernel.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            answer = _run(session, request["code"])
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _flush()
            data = json.dumps(answer).encode() + f"\0{request['token']}\0".encode()
            while data:
                data = data[os.write(control, data) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _hide_package() -> None:
    """Remove this package from sys.modules.

    The repository under work may have a package of the same name, which must be importable.
    """
    package = __name__.partition(".")[0]
    for name in [n for n in sys.modules if n == package or n.startswith(package + ".")]:
        del sys.modules[name]
