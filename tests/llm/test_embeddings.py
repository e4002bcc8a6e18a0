"""Tests of embeddings, and of finding skills by similarity."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from resolver.errors import ModelError
from resolver.events.actions import Recall
from resolver.llm.base import ModelConfig
from resolver.llm.embeddings import Embedder, cosine_similarity
from resolver.memory.skills.lookup import MEANING_REASON, RecordedSkillIndex, SkillIndex
from resolver.memory.skills.skill import Origin, Skill
from resolver.models.run import Completion

WORDS = ("time", "clock", "database", "colour")


class Endpoint:
    """An embedding endpoint of OpenAI's form: a text's vector counts a few words."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: bytes | None = None
        self.status = 200
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(size))
                endpoint.asked.append(body["input"])
                endpoint.headers.append(dict(self.headers))
                whole = endpoint.answer or json.dumps(endpoint.vectors(body["input"])).encode()
                self.send_response(endpoint.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def vectors(self, texts: list[str]) -> dict[str, Any]:
        rows = [[0.01 + text.lower().count(word) for word in WORDS] for text in texts]
        data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
        return {
            "object": "list",
            "model": "words",
            "data": data[::-1],
            "usage": {"prompt_tokens": 7 * len(texts), "total_tokens": 7 * len(texts)},
        }

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def embedder(endpoint: Endpoint, folder: Path, paid: list[Completion]) -> Embedder:
    config = ModelConfig(
        model="openai/words",
        api_key=SecretStr("sk-of-the-tests"),
        base_url=f"http://127.0.0.1:{endpoint.server.server_port}/v1",
        timeout=20,
    )
    return Embedder(config, folder / "cache", paid.append)


def test_texts_become_vectors_in_order_with_one_request_each(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    paid: list[Completion] = []
    first, second = embedder(endpoint, tmp_path, paid).vectors(["a clock", "a database"])
    assert (
        cosine_similarity(first, first) == pytest.approx(1)
        and cosine_similarity(first, second) < 0.1
    )
    again = embedder(endpoint, tmp_path, paid).vectors(["a database", "some colour"])
    assert again[0] == pytest.approx(second, abs=1e-5)
    assert endpoint.asked == [["a clock", "a database"], ["some colour"]]
    assert [usage.tokens.input for usage in paid] == [14, 7]
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-of-the-tests"


@pytest.mark.parametrize(
    ("status", "answer"),
    [(500, b"{}"), (401, b"no"), (200, b"garbage"), (200, b'{"data": []}'), (307, b""),
     (200, b'{"data": [{"index": 0, "embedding": [0, 0]}], "usage": {}}')],
)  # fmt: skip
def test_any_response_gives_vectors_or_a_model_error(
    endpoint: Endpoint, tmp_path: Path, status: int, answer: bytes
) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(ModelError) as caught:
        embedder(endpoint, tmp_path, []).vectors(["a"])
    assert "sk-of-the-tests" not in str(caught.value)


# Runs by itself, so that it has the environment of an operator.
ASKING = """
import sys
from pathlib import Path
from resolver.llm.base import ModelConfig
from resolver.llm.embeddings import Embedder
config = ModelConfig(model="openai/words", base_url=sys.argv[1], timeout=20)
Embedder(config, Path(sys.argv[2]), lambda _: None).vectors(["a clock"])
"""


def test_a_providers_key_of_the_environment_is_not_sent_to_a_base_url(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-c", ASKING, f"http://127.0.0.1:{endpoint.server.server_port}/v1",
         str(tmp_path)],
        env={
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PATH": "/usr/bin:/bin",
            "OPENAI_API_KEY": "sk-of-another-host",
        },
        check=True,
        timeout=60,
    )  # fmt: skip
    assert endpoint.headers[0]["Authorization"] == "Bearer none"


def skill(name: str, body: str) -> Skill:
    return Skill(name, "", body, f".agents/skills/{name}.md", Origin.REPOSITORY, "knowledge")


SKILLS = (skill("zones", "time and clock"), skill("tables", "database"), skill("art", "colour"))


def test_the_matching_skill_is_found_with_its_similarity(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    result: list[str] = []
    index = SkillIndex(embedder(endpoint, tmp_path, []), result.append)
    [(found, why)] = index.nearest("The clock shows the wrong time.", SKILLS)
    assert found.name == "zones" and why.startswith(MEANING_REASON) and result == []
    assert index.nearest("", SKILLS) == [] == index.nearest("clock", ())


def test_an_unavailable_model_is_reported_and_nothing_is_found(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.status, endpoint.answer = 500, b"{}"
    result: list[str] = []
    assert (
        SkillIndex(embedder(endpoint, tmp_path, []), result.append).nearest("clock", SKILLS) == []
    )
    assert len(result) == 1 and "could not be called" in result[0]


def test_a_replayed_run_uses_the_recorded_results() -> None:
    events = [
        Recall(query="zones", why=f"{MEANING_REASON} (0.91)"),
        Recall(query="art", why="“art” said"),
    ]
    assert RecordedSkillIndex(events).nearest("x", SKILLS) == [
        (SKILLS[0], f"{MEANING_REASON} (0.91)")
    ]
