"""Starts and ends a Chromium process. It knows nothing of pages."""

import fcntl
import os
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from .devtools import DevTools
from .processes import Family, end_session

MAX_SOCKET_FOLDER: Final = 60
"""Maximum length of a folder for the browser's sockets, whose paths may have 107 characters.

Source: unix(7).
"""

WIDTH, HEIGHT = 1280, 720
"""Size of the window's content area in CSS pixels."""

_QUIET: Final = (
    "--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-client-side-phishing-detection",
    "--disable-extensions", "--disable-breakpad", "--disable-crash-reporter",
    "--disable-search-engine-choice-screen", "--metrics-recording-only", "--mute-audio",
    "--password-store=basic", "--use-mock-keychain", "--force-color-profile=srgb",
)  # fmt: skip
"""Options against requests of the browser itself, questions, and sharing with the desktop."""

_STEADY: Final = (
    "--disable-gpu", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows", "--disable-ipc-flooding-protection",
    # Containers usually have 64 MB in /dev/shm, and a page that needs more crashes.
    "--disable-dev-shm-usage",
    # All frames of a page in one process, so that one session sees all of them. Site isolation
    # protects the secrets of sites from each other, and there are none here.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter"
    ",NetworkTimeServiceQuerying,CertificateTransparencyComponentUpdater,CaptivePortalLoginPage"
    ",AcceptCHFrame,HttpsUpgrades,PaintHolding",
    # It checks for updates all the same: let it ask a port where nothing listens.
    "--component-updater=url-source=http://127.0.0.1:9/",
    "--js-flags=--max-old-space-size=1024",
)  # fmt: skip
"""Options that keep pages running steadily in a headless container."""

_SANDBOX: Final = (
    # Chromium's own sandbox needs user namespaces or a set-uid program, which a container without
    # privileges does not have, and it refuses to start as root. A hostile page is confined by the
    # same means as all of the agent's programs: the container, or the namespaces of the local
    # runtime.
    "--no-sandbox",
)  # fmt: skip
"""Options about Chromium's own sandbox."""


def command_line(program: str, profile: str, environment: Mapping[str, str]) -> list[str]:
    """Return the program and its options.

    environment: its HTTPS_PROXY or HTTP_PROXY, if any, becomes the browser's proxy.
    """
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
    """Return the URL of the proxy in the environment, without credentials, or None."""
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
    """A running browser process in a session of its own, and its DevTools connection.

    bash: the shell to start it with.
    folder: for its profile and home; created if missing.
    on_event: see DevTools.
    Raises OSError if it can't be started, and RuntimeError if no thread can.
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
        # `--remote-debugging-pipe` makes Chromium read commands from descriptor 3 and write answers
        # to descriptor 4. Popen passes descriptors on under their own numbers only, so a shell
        # moves them.
        commands, our_writer = os.pipe()
        our_reader, answers = os.pipe()
        # Numbers other than 3 and 4, and far above those that bash allocates for itself (from 10
        # upwards).
        passed = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in (commands, answers)]
        reading, writing = passed
        moved = f'exec 3<&{reading} 4>&{writing} {reading}<&- {writing}>&-; exec "$@"'
        nothing = os.open(os.devnull, os.O_RDWR)
        options = command_line(program, os.path.join(folder, "profile"), environment)
        with family.starting(
            [bash, "-c", moved, "chromium", *options],
            environment=variables,
            folder=home,
            stdin=nothing,
            output=nothing,
            passed=passed,
            kept=(our_writer, our_reader),
            given=(commands, answers, *passed, nothing),
        ) as self.process:
            self.tools = DevTools(our_reader, our_writer, on_event)

    def kill(self) -> None:
        """Kill all of its processes; every wait then raises DevToolsClosed."""
        end_session(self.process.pid)

    def close(self) -> int:
        """Kill it and return its exit code."""
        code = self._family.end(self.process)
        self.tools.close()
        return code
