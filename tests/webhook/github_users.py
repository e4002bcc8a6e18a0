"""GitHub as the server's pages use it: its OAuth, and answers to the tokens of people."""

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.testclient import TestClient

from resolver.entrypoints.webhook.login import GitHubUsers

BASE = "https://resolver.example.org"
SECRET = "webhook-canary-51c7e9d3f0a28b46"


class GitHub:
    """tokens: the login of each token that is valid. levels: what mona may do in each repository.
    challenge: that of the login in progress. seconds: the time."""

    def __init__(self) -> None:
        self.tokens = {"token-of-mona": "mona"}
        self.levels: dict[str, str] = {"octo/calc": "push", "octo/docs": "pull"}
        self.challenge = ""
        self.exchanged: list[dict[str, str]] = []
        self.is_down, self.seconds = False, 0.0
        app = FastAPI()
        app.middleware("http")(self._refuse)
        app.post("/login/oauth/access_token")(self._exchange)
        app.get("/user")(self._user)
        app.get("/user/installations")(self._installations)
        app.get("/user/installations/7/repositories")(self._repositories)
        app.get("/repos/{owner}/{name}")(self._repository)
        self.users = GitHubUsers(
            "https://github.example", "https://api.github.example", lambda: "Iv1.client",
            "client-secret", lambda: self.seconds, transport=httpx2.ASGITransport(app),
        )  # fmt: skip

    async def _refuse(self, request: Request, call_next: Any) -> Response:
        if self.is_down:
            return JSONResponse({"message": "client-secret"}, 502)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.method == "GET" and token not in self.tokens:
            return JSONResponse({"message": "Bad credentials"}, 401)
        answer: Response = await call_next(request)
        return answer

    async def _exchange(self, request: Request) -> dict[str, str]:
        fields = {
            name: values[0] for name, values in parse_qs((await request.body()).decode()).items()
        }
        self.exchanged.append(fields)
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if fields.get("code") != "right-code" or proof != self.challenge:
            return {"error": "bad_verification_code"}
        return {"access_token": "token-of-mona", "token_type": "bearer"}

    async def _user(self) -> dict[str, str]:
        return {"login": "mona"}

    async def _installations(self) -> dict[str, Any]:
        return {"installations": [{"id": 7}]}

    async def _repositories(self, page: int) -> dict[str, Any]:
        rows = [self._row(f"octo/filler{n}", "") for n in range(100)]
        last = [self._row(name.title(), level) for name, level in self.levels.items()]
        return {"repositories": rows if page == 1 else last}

    async def _repository(self, owner: str, name: str) -> Response:
        full_name = f"{owner}/{name}"
        if full_name == "octo/old":
            return JSONResponse({}, 301, {"Location": "https://api.github.example/repos/octo/calc"})
        if full_name not in self.levels:
            return JSONResponse({"message": "Not Found"}, 404)
        return JSONResponse(self._row(full_name, self.levels[full_name]))

    @staticmethod
    def _row(name: str, level: str) -> dict[str, Any]:
        return {"full_name": name, "permissions": {level: True} if level else {}}


def begin_login(client: TestClient, github: GitHub, path: str = "/") -> str:
    """Begin a login as a browser, and return its state."""
    answer = client.get("/login", params={"path": path}, follow_redirects=False)
    address = urlsplit(answer.headers["location"])
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert address.netloc + address.path == "github.example/login/oauth/authorize"
    assert query["client_id"] == "Iv1.client" and query["code_challenge_method"] == "S256"
    assert query["redirect_uri"] == f"{BASE}/login/callback"
    github.challenge = query["code_challenge"]
    return query["state"]


def log_in(client: TestClient, github: GitHub, path: str = "/") -> str:
    """Log in as mona, and return where that leads."""
    state = begin_login(client, github, path)
    answer = client.get(f"/login/callback?code=right-code&state={state}", follow_redirects=False)
    assert answer.status_code == 303
    return str(answer.headers["location"])
