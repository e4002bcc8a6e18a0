"""Errors of the server's pages, as a browser and as a program see them."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from resolver.entrypoints.webhook.error_pages import add_error_pages
from resolver.entrypoints.webhook.login_pages import PageLogin
from resolver.entrypoints.webhook.page_headers import site_headers
from resolver.entrypoints.webhook.page_readers import ReaderAccess
from resolver.entrypoints.webhook.page_sessions import SealedCookies
from tests.webhook.test_page_access import Users

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
BASE = "https://resolver.example.org"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.get("/busy")
    async def busy() -> None:
        raise HTTPException(503, "too many requests", {"Retry-After": "5"})

    @app.get("/refused/{name}")
    async def refused(name: str) -> None:
        raise HTTPException(403, f"{name} is not allowed")

    @app.get("/defect")
    async def defect() -> None:
        raise ZeroDivisionError("/srv/secret-path")

    users = Users()
    add_error_pages(app, PageLogin(users, ReaderAccess(users), SealedCookies("secret"), BASE))
    with TestClient(app, BASE, raise_server_exceptions=False) as made:
        yield made


def test_a_browser_gets_a_page_that_says_what_to_do(client: TestClient) -> None:
    answer = client.get("/runs/none", headers=BROWSER)
    assert answer.status_code == 404
    assert all(answer.headers[name] == value for name, value in site_headers().items())
    assert "Open the link in Resolver's comment" in answer.text
    assert f'href="{BASE}/login?path=%2F"' in answer.text and f'href="{BASE}/"' in answer.text


def test_a_program_gets_what_it_got_without_pages(client: TestClient) -> None:
    for accept in ("application/json", "*/*", ""):
        answer = client.get("/runs/none", headers={"Accept": accept})
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
    assert client.get("/busy").json() == {"detail": "too many requests"}
    assert client.get("/defect").text == "Internal Server Error"


def test_the_reason_and_the_headers_of_an_error_are_kept(client: TestClient) -> None:
    answer = client.get("/busy", headers=BROWSER)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "<p>Too many requests.</p>" in answer.text
    assert client.post("/busy", headers=BROWSER).status_code == 405


@pytest.mark.attack
@pytest.mark.parametrize("path", [f"/refused/{HOSTILE}", f"/{HOSTILE}", f"/busy?x={HOSTILE}"])
def test_nothing_of_a_request_is_markup_on_an_error_page(client: TestClient, path: str) -> None:
    """The path, the query or a name in a request is markup: the page of the error has none."""
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code >= 400 and "<script" not in answer.text.lower()
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_defect_shows_nothing_of_the_server(client: TestClient) -> None:
    answer = client.get("/defect", headers=BROWSER)
    assert answer.status_code == 500 and "log has the reason" in answer.text
    assert "secret-path" not in answer.text and "ZeroDivision" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
