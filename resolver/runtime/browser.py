"""The browser of a Docker sandbox: Playwright's MCP server in a container of its own.

It shares the network of the sandbox as services do (services.py): it reaches what the agent serves
on the loopback interface, and everything else only through the proxy. Its input and output are
connected to the host, and it ends when they do. The pages and the server are not trusted.
"""

import threading
from contextlib import suppress
from typing import Any, Final

from resolver.errors import SandboxError
from resolver.runtime.base import BROWSER_OPTIONS
from resolver.runtime.channel import DockerChannel
from resolver.runtime.engine import engine_errors, image_settings, remove_container, watch_disk
from resolver.runtime.services import FILTERED, ServiceHost, service_options
from resolver.runtime.toolbox import BASH
from resolver.sandbox.proxy import proxy_variables

_OUTPUT: Final = "--output-dir=/tmp/browser"
_NO_PROXY: Final = {"NO_PROXY": "update.googleapis.com"}
"""Chromium looks for updates, which nothing else turns off. Without the proxy it reaches nothing,
and the run's log has no refused connection that no page has asked for."""

_ADVICE: Final = "check `browser_image`"


class BrowserContainer:
    """A running server. `read` and `write` may be called from two threads, `close` from any.

    proxy_port: port of the sandbox's proxy; 0 if there is none.
    Raises SandboxError if it can't be started.
    """

    def __init__(self, sandbox: ServiceHost, proxy_port: int) -> None:
        client, image = sandbox.client, sandbox.spec.browser_image
        assert image is not None, "a machine without an image starts no browser"
        settings = image_settings(client, image)
        command = [
            *(settings.get("Entrypoint") or settings.get("Cmd") or ()),
            *BROWSER_OPTIONS,
            _OUTPUT,
        ]
        options: dict[str, Any] = {
            **service_options(sandbox),
            # The shell finds the server on the image's PATH.
            "entrypoint": [*FILTERED, BASH, "-p", "-c", 'exec "$@"', "browser"],
            "environment": proxy_variables(proxy_port, _NO_PROXY) if proxy_port else {},
            "stdin_open": True,
        }
        self._closed = threading.Lock()
        with engine_errors("the browser could not be started", _ADVICE):
            self._container = client.containers.create(image, command, **options)
            try:
                parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                self._channel = DockerChannel(self._container.attach_socket(params=parameters))
                self._container.start()
            except BaseException:
                with suppress(SandboxError):
                    remove_container(self._container)
                raise
        self._watch = watch_disk(client, self._container, sandbox.spec.disk)

    def read(self) -> bytes:
        """Return the next output; b"" if the server has ended."""
        return self._channel.receive()

    def write(self, data: bytes) -> None:
        """Write to the server's input. Raises SandboxError if it does not accept the data."""
        self._channel.send(data)

    def close(self) -> None:
        """End and remove the container; a waiting `read` returns b"" then."""
        if not self._closed.acquire(blocking=False):
            return
        self._watch.close()
        self._channel.close()
        with suppress(SandboxError):  # the next run of the repository, or `gc`, removes it
            remove_container(self._container)

    @property
    def exit_details(self) -> str:
        """The end of what the server wrote to standard error."""
        return self._watch.reason or self._channel.exit_details()
