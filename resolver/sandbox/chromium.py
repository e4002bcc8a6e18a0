"""A Chromium process: where it is found, how it is started, how it ends. Knows no page."""

import fcntl
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from .devtools import DevTools
from .processes import Family, end_session

NAMES: Final = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
    "headless_shell", "chrome-headless-shell", "chrome",
)  # fmt: skip

MAX_SOCKET_FOLDER: Final = 60
"""Characters of a folder that its sockets, whose paths have 107 at most, are put below."""

WIDTH, HEIGHT = 1280, 720
"""The window's inside, in CSS pixels."""

_QUIET: Final = (
    "--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-client-side-phishing-detection",
    "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter",
    "--disable-search-engine-choice-screen", "--metrics-recording-only", "--mute-audio",
    "--password-store=basic", "--use-mock-keychain", "--force-color-profile=srgb",
)  # fmt: skip
"""No requests of the browser's own, no questions, nothing shared with the desktop."""

_STEADY: Final = (
    "--disable-gpu", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--disable-ipc-flooding-protection",
    # Containers have 64 MB there, and what does not fit kills a page.
    "--disable-dev-shm-usage",
    # All frames of a page in one process, so that one session sees all of them. What this takes
    # away, keeping sites from each other's secrets, has no use here: there are none.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter"
    ",NetworkTimeServiceQuerying,CertificateTransparencyComponentUpdater,CaptivePortalLoginPage"
    ",AcceptCHFrame,HttpsUpgrades,PaintHolding",
    # It asks for updates all the same: then of nobody.
    "--component-updater=url-source=http://127.0.0.1:9/",
    "--js-flags=--max-old-space-size=1024",
)  # fmt: skip

_SANDBOX: Final = (
    # Chromium's own sandbox needs user namespaces or a set-uid program, which a container without
    # privileges does not have, and it refuses to start as root. What holds a hostile page is the
    # container (or the local runtime's namespaces) that all of the agent's programs are in.
    "--no-sandbox",
)  # fmt: skip


def find_chromium(environment: Mapping[str, str]) -> str | None:
    """The program that CHROMIUM names, or the first known one on PATH; None where there is none."""
    path = environment.get("PATH")
    named = environment.get("CHROMIUM")
    if named:
        return shutil.which(named, path=path)
    return next((found for name in NAMES if (found := shutil.which(name, path=path))), None)


def command_line(program: str, profile: str, environment: Mapping[str, str]) -> list[str]:
    """Program and options. HTTP_PROXY or HTTPS_PROXY of `environment` is the way out, if any."""
    command = [
        program,
        "--headless",
        "--no-startup-window",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        f"--window-size={WIDTH},{HEIGHT}",
        *_SANDBOX,
        *_QUIET,
        *_STEADY,
    ]
    proxy = _proxy(environment)
    if proxy:
        command += [
            f"--proxy-server={proxy}",
            "--proxy-bypass-list=localhost;*.localhost;127.0.0.0/8;[::1]",
        ]
    return command


def _proxy(environment: Mapping[str, str]) -> str | None:
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        try:
            address = urlsplit(environment.get(name, ""))
            if address.hostname and address.port:
                host = f"[{address.hostname}]" if ":" in address.hostname else address.hostname
                return f"http://{host}:{address.port}"
        except ValueError:
            continue
    return None


class Chromium:
    """A live browser process in a session of its own, and its DevTools.

    bash: a shell to start it with. folder: its profile and home, made when missing.
    Raises OSError when it can't be started.
    """

    def __init__(
        self,
        family: Family,
        program: str,
        bash: str,
        folder: str,
        environment: Mapping[str, str],
        on_event: Callable[[str, str, dict[str, Any]], None],
    ) -> None:
        self._family = family
        home = os.path.join(folder, "home")
        os.makedirs(home, mode=0o700, exist_ok=True)
        variables = {**environment, "HOME": home, "LC_ALL": "C.UTF-8"}
        if len(folder) <= MAX_SOCKET_FOLDER:
            variables["TMPDIR"] = folder
        commands, our_writer = os.pipe()
        our_reader, answers = os.pipe()
        # Numbers that are neither 3 and 4 nor what bash keeps for itself (10 and up, and 255).
        passed = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in (commands, answers)]
        reading, writing = passed
        moved = f'exec 3<&{reading} 4>&{writing} {reading}<&- {writing}>&-; exec "$@"'
        nothing = os.open(os.devnull, os.O_RDWR)
        options = command_line(program, os.path.join(folder, "profile"), environment)
        try:
            self.process = family.spawn(
                [bash, "-c", moved, "chromium", *options],
                environment=variables,
                folder=home,
                stdin=nothing,
                output=nothing,
                passed=passed,
            )
        except OSError:
            os.close(our_writer)
            os.close(our_reader)
            raise
        finally:
            for descriptor in (commands, answers, *passed, nothing):
                os.close(descriptor)
        self.tools = DevTools(our_reader, our_writer, on_event)

    def kill(self) -> None:
        """End all of its processes; every wait then raises Lost."""
        end_session(self.process.pid)

    def close(self) -> int:
        """Kill it, and give its exit code."""
        self.kill()
        code = self.process.wait()
        self._family.forget(self.process)
        self.tools.close()
        return code
