"""A model endpoint of the tests: the providers' protocols over a real socket, scripted.

Speaks what the path of a request asks for (`tests/parts/providers`; OpenAI's and Anthropic's
protocols streamed, too), records every request, and misbehaves on demand. What it answers comes
from `script` or `answer_with`.
"""

import dataclasses
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from resolver.llm.preflight import QUESTION
from tests.parts.providers import anthropic, bedrock, gemini, ollama, openai_chat, openai_responses
from tests.parts.providers.answer import Answer, Request, ToolCall, Usage

__all__ = ["Answer", "ModelEndpoint", "Request", "ToolCall", "Usage"]

_TOKEN = {"access_token": "ya29.token-of-the-tests", "expires_in": 3600, "token_type": "Bearer"}


def reply(
    text: str | None,
    *,
    finish_reason: str = "stop",
    reasoning: str = "",
    signature: str = "",
    usage: Usage | None = None,
) -> Answer:
    """A reply in words."""
    return Answer(
        text=text,
        finish_reason=finish_reason,
        reasoning=reasoning,
        signature=signature,
        usage=usage,
    )


def tool_call(name: str, arguments: dict[str, Any] | str, *, text: str | None = None) -> Answer:
    """A reply with one tool call."""
    return tool_calls([(name, arguments)], text=text)


def tool_calls(calls: list[tuple[str, dict[str, Any] | str]], *, text: str | None = None) -> Answer:
    """A reply with several tool calls."""
    made = tuple(ToolCall(name, arguments) for name, arguments in calls)
    return Answer(text=text, calls=made, finish_reason="tool_calls")


def error(
    status: int,
    message: str = "scripted error",
    *,
    code: str | None = None,
    retry_after: float | str | None = None,
) -> Answer:
    """An error as OpenAI words it."""
    body = {"error": {"message": message, "type": "scripted", "code": code}}
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return Answer(status=status, body=json.dumps(body).encode(), headers=headers)


def empty() -> Answer:
    """A reply with neither text nor tool calls."""
    return Answer(text="", finish_reason="stop")


def garbage() -> Answer:
    """Status 200, and a body that is no JSON."""
    return Answer(body=b'\x00\xff{"choices": [')


def raw(body: bytes, *, content_type: str = "application/json", status: int = 200) -> Answer:
    """Exactly these bytes."""
    return Answer(body=body, content_type=content_type, status=status)


def html(status: int = 200) -> Answer:
    """The page of a proxy or a login wall."""
    page = b"<!DOCTYPE html><html><body><h1>Please log in</h1></body></html>"
    return Answer(body=page, content_type="text/html", status=status)


def redirect(location: str, status: int = 307) -> Answer:
    """Somewhere else."""
    return Answer(status=status, body=b"", headers=(("Location", location),))


def cut_connection(after: int = 0) -> Answer:
    """The connection ends after so many bytes of the body; 0: before the status line."""
    return Answer(text="never seen whole", finish_reason="stop", cut_after=after)


def slow(seconds: float, then: Answer | None = None) -> Answer:
    """The answer comes late."""
    return dataclasses.replace(then or reply("late"), delay=seconds)


def drip(seconds: float, then: Answer | None = None) -> Answer:
    """The body comes byte by byte, so that no single read is slow."""
    return dataclasses.replace(then or reply("late"), drip=seconds)


class ModelEndpoint:
    """The server. `url` is what a person would set as LLM_BASE_URL.

    usage: of answers that name none. readiness: what it answers to the question before a run, or
    makes of its body; the question is in `checks`, not in `requests`. Unless a test says otherwise,
    the endpoint is too busy for it. tokens: how often Google's token server, which stands at
    `/token`, was asked.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        """host: "0.0.0.0" lets a container reach it through the bridge."""
        self.requests: list[Request] = []
        self.usage = Usage()
        self.readiness: Answer | Callable[[dict[str, Any]], Answer] = error(503, "busy")
        self.checks: list[Request] = []
        self.tokens = 0
        self._script: deque[Answer] = deque()
        self._answer: Callable[[dict[str, Any]], Answer] | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._calls_made = 0
        self._server = _Server((host, 0), _handler_for(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def root(self) -> str:
        """Base URL of the dialects that bring their own path (Anthropic, Azure)."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def script(self, *answers: Answer) -> None:
        """Queue answers; a request beyond the last one gets an error 400 that says so."""
        with self._lock:
            self._script.extend(answers)

    def answer_with(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        """Answer every request whose script is empty by what this makes of its body."""
        self._answer = answer

    @property
    def left(self) -> int:
        """Scripted answers that nobody has asked for yet."""
        return len(self._script)

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def __enter__(self) -> "ModelEndpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, request: Request) -> Answer:
        with self._lock:
            if QUESTION in json.dumps(request.body):
                self.checks.append(request)
                found = self.readiness
                return self._number(found if isinstance(found, Answer) else found(request.body))
            self.requests.append(request)
            if self._script:
                return self._number(self._script.popleft())
        if self._answer is not None:
            answer = self._answer(request.body)
            with self._lock:
                return self._number(answer)
        return error(400, "the script of the model endpoint has no further answer")

    def _number(self, answer: Answer) -> Answer:
        """Give each tool call without an id the next one."""
        numbered = []
        for call in answer.calls:
            self._calls_made += 1
            numbered.append(
                call if call.id else dataclasses.replace(call, id=f"call_{self._calls_made}")
            )
        return dataclasses.replace(answer, calls=tuple(numbered), usage=answer.usage or self.usage)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not worth a traceback."""


def _handler_for(endpoint: ModelEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw_body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/token":
                endpoint.tokens += 1
                self._send(raw(json.dumps(_TOKEN).encode()), Request(self.path, {}, {}))
                return
            request = Request(
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=json.loads(raw_body),
            )
            self._send(endpoint._next(request), request)

        def _send(self, answer: Answer, request: Request) -> None:
            endpoint._closing.wait(answer.delay)
            content_type, body = encode(answer, request)
            if answer.cut_after == 0:
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            if answer.drip:
                self._send_slowly(body, answer.drip)
            elif answer.cut_after is not None:
                self.wfile.write(body[: answer.cut_after])
                self.close_connection = True
            else:
                self.wfile.write(body)
            self.wfile.flush()

        def _send_slowly(self, body: bytes, pause: float) -> None:
            for position in range(len(body)):
                if endpoint._closing.is_set():
                    return
                self.wfile.write(body[position : position + 1])
                self.wfile.flush()
                endpoint._closing.wait(pause)

        def log_message(self, format: str, *args: object) -> None:
            """Silent: the requests are recorded."""

    return Handler


def encode(answer: Answer, request: Request) -> tuple[str, bytes]:
    """Content type and body of an answer, in the shape the request's path and flags ask for."""
    if answer.body is not None:
        return answer.content_type, answer.body
    path = request.path.partition("?")[0]
    protocol: Any = openai_chat
    if path.endswith(("/messages", "awPredict")):  # the second is Claude's at Vertex
        protocol = anthropic
    elif path.endswith("/responses"):
        protocol = openai_responses
    elif path.endswith("/converse"):
        protocol = bedrock
    elif path.endswith("/api/chat"):
        protocol = ollama
    elif path.endswith("generateContent"):
        protocol = gemini
    if request.body.get("stream"):
        return "text/event-stream", protocol.stream(answer, request)
    return answer.content_type, json.dumps(protocol.whole(answer, request)).encode()


@pytest.fixture
def model_endpoint() -> Iterator[ModelEndpoint]:
    """A fresh endpoint for one test."""
    with ModelEndpoint() as endpoint:
        yield endpoint
