"""Requests made from the OpenAPI document of the server, and answers compared with it."""

import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import ignored_auth

from resolver.entrypoints.webhook.health import ReadinessCheck
from resolver.entrypoints.webhook.page_links import page_key
from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.entrypoints.webhook.run_pages import RunPages, add_run_pages
from resolver.entrypoints.webhook.webhook import create_webhook_app
from resolver.storage.database import DatabaseError, parse_database_url
from resolver.storage.run_folders import LocalRunFolders
from scripts.openapi_docs import openapi_document
from tests.webhook.test_webhook import webhook_signature

SECRET = "webhook-canary-0b7d5a9c3e1f8264"
RUN = "20260304-093000-0a1b2c"
OPERATIONS = [
    "GET /healthz",
    "GET /readyz",
    "GET /runs/{run}",
    "POST /webhook",
]
TO_SIGN = "sign"
"""Value of the signature header in place of which the signature of the body is sent."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Signing:
    """The application behind what GitHub does: it signs a request that is to be signed."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"x-hub-signature-256") != TO_SIGN.encode():
            await self.app(scope, receive, send)
            return
        message = await receive()
        headers[b"x-hub-signature-256"] = webhook_signature(SECRET, message["body"]).encode()

        async def replay() -> Message:
            return message

        await self.app({**scope, "headers": list(headers.items())}, replay, send)


def requests_of(operation: Any) -> st.SearchStrategy[Any]:
    """Requests that fit the description of an operation, and where it has something to violate,
    such that don't."""
    fitting = operation.as_strategy(GenerationMode.POSITIVE)
    if not operation.body and not any(operation.iter_parameters()):
        return fitting
    return fitting | operation.as_strategy(GenerationMode.NEGATIVE)


class Interface:
    """The server's routes with one run and one repository, and the document of them.

    is_full: True while the disk of the database is full.
    """

    def __init__(self, folder: Path) -> None:
        url = parse_database_url(f"sqlite:///{folder}/resolver.db")
        self.queue, self.is_full = RequestQueue(url), False
        (folder / RUN).mkdir()
        self.folder = folder
        app = create_webhook_app(
            SECRET,
            self._accept,
            pages=self._add_pages,
            check=ReadinessCheck(self.queue, folder, free_bytes=lambda _: self._free_bytes()),
        )
        self.schema = schemathesis.openapi.from_asgi(
            "/openapi.json", Signing(app), config=SchemathesisConfig(seed=1)
        )
        self.operations = {
            operation.label: operation
            for operation in (result.ok() for result in self.schema.get_all_operations())
        }
        self.requests = {
            label: requests_of(operation) for label, operation in self.operations.items()
        }

    def _add_pages(self, app: FastAPI) -> None:
        add_run_pages(app, RunPages(LocalRunFolders(self.folder), SECRET))

    def _accept(self, delivery: str, event: str, payload: dict[str, Any]) -> str:
        if self.is_full:
            raise DatabaseError("the database x can't be used: database or disk is full")
        return "stored"

    def _free_bytes(self) -> int:
        return 0 if self.is_full else 10**12

    def close(self) -> None:
        self.queue.close()


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    made = Interface(tmp_path_factory.mktemp("interface"))
    yield made
    made.close()


def test_every_route_is_in_the_document(interface: Interface) -> None:
    assert sorted(interface.operations) == OPERATIONS
    ids = [operation.definition.raw["operationId"] for operation in interface.operations.values()]
    assert len(set(ids)) == len(ids)


def give_existing_page(case: Any) -> None:
    """Let a request ask for a page that there is, with the key to it."""
    if case.operation.label == "GET /runs/{run}":
        case.path_parameters["run"] = RUN
        case.query["key"] = page_key(SECRET, RUN)


@pytest.mark.parametrize("label", OPERATIONS)
@given(data=st.data())
def test_every_answer_is_as_the_document_says(
    interface: Interface, label: str, data: st.DataObject
) -> None:
    """Requests that fit the HTTP interface's description and requests that don't, with valid
    credentials and without, are answered as the description says: never by a server error."""
    case = data.draw(interface.requests[label])
    interface.is_full = data.draw(st.integers(0, 9)) == 9
    # That a full disk is answered 503 is in the document; 500 is not.
    excluded = [not_a_server_error] if interface.is_full else []
    headers = {}
    if data.draw(st.booleans()):
        give_existing_page(case)
        if label == "POST /webhook":
            headers["X-Hub-Signature-256"] = TO_SIGN
    if label.endswith("}"):
        excluded.append(ignored_auth)  # a wrong key is answered as a page that does not exist
    case.call_and_validate(headers=headers, excluded_checks=excluded)


def test_the_published_document_is_up_to_date(interface: Interface) -> None:
    text = (Path(__file__).parents[2] / "docs/reference/openapi.json").read_text()
    assert text == openapi_document(), "run `make docs`"
    assert json.loads(text) == interface.schema.raw_schema
