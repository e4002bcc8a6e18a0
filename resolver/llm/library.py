"""Access to litellm: import and configuration, the HTTP client, names of models, prices, windows.

The import takes seconds, so a run starts it in the background (`preload_litellm`). litellm's own
retries, telemetry and download of prices are disabled; `litellm_model.py` decides about retries.

The HTTP client for all model calls follows no redirects, keeps no cookies, and limits the size and
the duration of a response, from the first byte of its head on. A timeout of httpx limits
the wait for each read only. An endpoint that sends one header line, or one `103 Early Hints`, per
second would keep a call waiting without end.
"""

import logging
import os
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from resolver.llm.base import ModelConfig
from resolver.models.run import Tokens

logger = logging.getLogger("resolver.llm")


class ResponseDeadline:
    """Shuts the connection of one request down when its time is over.

    The connection is learned from httpcore's trace of the request:
    https://www.encode.io/httpcore/extensions/#trace
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.has_expired = False

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take the connection from an event of httpcore."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            connection = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets.append(connection)
                if self.has_expired:
                    _shut_down(connection)

    def _expire(self) -> None:
        with self._lock:
            self.has_expired = True
            for connection in self._sockets:
                _shut_down(connection)

    @contextmanager
    def running(self, request: httpx.Request) -> Iterator[None]:
        """Limit the time of the block. Raises httpx.ReadTimeout if it is over."""
        request.extensions = {**request.extensions, "trace": self.trace}
        self._timer.start()
        try:
            yield
        except httpx.TransportError as error:
            if self.has_expired:
                raise httpx.ReadTimeout("the reply took too long", request=request) from error
            raise
        finally:
            self._timer.cancel()
        if self.has_expired:  # the end of the connection can look like the end of the reply
            raise httpx.ReadTimeout("the reply took too long", request=request)


def _shut_down(connection: socket.socket) -> None:
    # The method of the plain socket: that of a TLS socket is not safe while another thread reads.
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


MAX_REPLY_BYTES = 10_000_000
MAX_REPLY_LINES = 200_000
"""Maximum number of lines of a reply. litellm needs up to 0.1 ms for a line of a streamed reply,
and works on it after the deadline has ended."""


def read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the body of a response. Reading stops at `max_bytes`.

    Raises httpx.DecodingError if the body is larger, has too many lines, or is compressed, which
    was not requested.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise _decoding_error(response, f"the reply has the unsupported encoding {encoding[:100]}")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise _decoding_error(response, f"the reply is larger than {max_bytes:,} bytes")
    if body.count(b"\n") > MAX_REPLY_LINES:
        raise _decoding_error(response, f"the reply has more than {MAX_REPLY_LINES:,} lines")
    return bytes(body)


def _decoding_error(response: httpx.Response, message: str) -> httpx.DecodingError:
    return httpx.DecodingError(message, request=response.request)


REDIRECTED = "it redirects, which is not followed,"


class BoundedClient(httpx.Client):
    """An httpx client that reads each response completely, within limits.

    A redirect becomes an error response (400), which the code of every provider in litellm reports
    as an error. Following it would send the conversation, and with some providers the key, to a
    host that nobody configured. The read timeout of a request limits the whole response from its
    head on, not only the wait for each chunk.

    last_headers: headers of the last response; litellm loses them for some errors.
    """

    def __init__(self, timeout: httpx.Timeout, max_bytes: int = MAX_REPLY_BYTES) -> None:
        """Create a client without kept-alive connections.

        timeout: for requests without a timeout of their own.
        max_bytes: maximum size of a body.
        """
        super().__init__(
            timeout=timeout,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # Don't keep connections alive. Commands run between two calls, and endpoints close
            # idle connections: reuse saves a handshake, but a stale connection costs a failed
            # attempt.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._max_bytes = max_bytes
        self.last_headers: dict[str, str] = {}

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Return the complete response.

        Raises httpx.ReadTimeout if it takes too long, and httpx.DecodingError if it is too large.
        """
        seconds = request.extensions.get("timeout", {}).get("read")
        self.last_headers = {}
        request.headers["Accept-Encoding"] = "identity"
        options |= {"stream": True, "follow_redirects": False}
        deadline = nullcontext() if seconds is None else ResponseDeadline(seconds).running(request)
        with deadline:
            response = super().send(request, **options)
            self.last_headers = dict(response.headers)
            try:
                body = read_body(response, self._max_bytes)
            finally:
                response.close()
        if response.has_redirect_location:
            return _redirect_error(request, response)
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name not in {"content-encoding", "content-length", "transfer-encoding"}
        ]
        complete_response = httpx.Response(
            response.status_code, headers=headers, content=body, request=request
        )
        complete_response.elapsed = response.elapsed
        return complete_response


def _redirect_error(request: httpx.Request, redirect: httpx.Response) -> httpx.Response:
    target = redirect.headers["location"]
    message = f"{REDIRECTED} to {target} (status {redirect.status_code})"
    return httpx.Response(400, json={"error": {"message": message}}, request=request)


_SHARED_TIMEOUT = 600.0  # seconds, for requests without a timeout of their own

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it downloads a price list on import
    "LITELLM_MODE": "PRODUCTION",  # otherwise it loads a nearby .env file into the environment
    # Use litellm's own HTTP code instead of the openai package, which transforms every message by
    # its types and takes nine times as long for a long conversation. Read at each call.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "True",
}

# Warnings about litellm's own types, which nobody who runs Resolver can act on. Registered when
# this module is imported, not when litellm is: a `catch_warnings` block that another thread has
# open would remove the filter again when it ends, and restores it when the filter was there before.
for _message in ("Pydantic serializer warnings", ".*`ReadOnly` qualifier"):
    warnings.filterwarnings("ignore", message=_message)


_LIBRARY_LOCK = threading.Lock()
"""Held by the thread that loads litellm; other threads wait until it is ready."""


def litellm() -> Any:
    """Return the package, loaded and configured."""
    with _LIBRARY_LOCK:
        return _load_litellm()


@cache
def _load_litellm() -> Any:
    """Import litellm with the configuration that has to be set before and after the import."""
    os.environ.update(_ENVIRONMENT)
    # These loggers write conversations and tracebacks. What matters is raised as an exception too.
    for name in ("LiteLLM", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    import litellm as package

    package.telemetry = False
    package.suppress_debug_info = True
    package.redact_messages_in_exceptions = True
    # Otherwise another thread processes the whole conversation for each chunk of a reply and holds
    # the GIL meanwhile, which doubles the time of a call in a long conversation.
    package.disable_streaming_logging = True
    # For the providers that litellm reaches through the openai package.
    package.client_session = BoundedClient(timeout=httpx.Timeout(_SHARED_TIMEOUT))
    return package


def preload_litellm() -> threading.Thread:
    """Start to load litellm, and return the thread that does so. It does not keep the process
    alive.

    An ImportError is only logged, at debug level: the next user of litellm gets it again, where a
    run can report it.
    """

    def load() -> None:
        try:
            litellm()
        except ImportError:
            logger.debug("litellm could not be loaded in the background", exc_info=True)

    thread = threading.Thread(target=load, name="preload", daemon=True)
    thread.start()
    return thread


def wire_name(config: ModelConfig) -> str:
    """Return litellm's name of the model.

    An endpoint at a base URL is assumed to have OpenAI's API unless the name has a known provider.
    """
    name = config.model
    provider = name.partition("/")[0] if "/" in name else None
    if config.base_url and provider not in litellm().provider_list:
        return f"openai/{name}"
    return name


def entry_of(name: str) -> dict[str, Any] | None:
    """Return the model's entry in litellm's table, None if there is none.

    name: litellm's name of the model.

    Reads the table directly, because litellm's functions query a local server for some models and
    report a price of zero for unknown ones.
    """
    package = litellm()
    table: dict[str, dict[str, Any]] = package.model_cost
    name = name.replace("/responses/", "/", 1)
    try:
        model, provider, *_ = package.get_llm_provider(name)
    except package.BadRequestError:
        return None
    for key in (name, f"{provider}/{model}"):
        if key in table:
            return table[key]
    entry = table.get(model)
    if entry and str(entry.get("litellm_provider", "")).startswith(provider):
        return entry
    return None


def price_of(name: str, tokens: Tokens, cache_write_tokens: int) -> float:
    """Return the price in US dollars, for a model whose price is in the table.

    cache_write_tokens: input tokens that were written to the prompt cache.
    """
    parts = litellm().cost_per_token(
        model=name.replace("/responses/", "/", 1),
        prompt_tokens=tokens.input,
        completion_tokens=tokens.output,
        cache_read_input_tokens=tokens.cached,
        cache_creation_input_tokens=cache_write_tokens,
    )
    return float(max(0.0, sum(parts)))


def context_window(config: ModelConfig) -> int | None:
    """Return the maximum number of input tokens, None if it is not in the table.

    Loads litellm, which takes seconds the first time.
    """
    entry = entry_of(wire_name(config)) or {}
    tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None
