"""Property tests: servers that send anything are opened, called and closed."""

import json
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.events.actions import McpCall
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Address, Endpoint, Launch
from tests.mcp.test_schemas import json_values
from tests.parts.model_endpoint import Answer, ModelEndpoint, raw

GREETING = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
ids = st.sampled_from([1, 2, 3, "1", None, -1, 2**70, True])
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": ids,
        "method": st.sampled_from(["ping", "notifications/tools/list_changed", "x", "roots/list"]),
        "params": json_values,
        "result": json_values
        | st.just({**GREETING, "capabilities": {}})
        | st.fixed_dictionaries({"tools": json_values, "nextCursor": json_values}),
        "error": json_values,
    },
)
said = messages.map(lambda m: json.dumps(m).encode()) | st.binary(max_size=60)


def open_and_call(way: Launch | Address) -> list[str]:
    """Open the server, call its tool, and return the warnings."""
    notes: list[str] = []
    endpoint = Endpoint("t", way, lambda _: True, 0.5)
    with McpServers([endpoint], str, lambda text: None, notes.append, start_seconds=0.5) as servers:
        assert servers.call(McpCall(server="t", name="x")).content
    return notes


class Saying:
    """A program that writes this and ends, whatever it is asked."""

    exit_details = "exit code 0"

    def __init__(self, output: bytes) -> None:
        self._output = output

    def read(self) -> bytes:
        output, self._output = self._output, b""
        return output

    def write(self, data: bytes) -> None:
        """Read it."""

    def close(self) -> None:
        """End, which it has."""


@given(st.lists(said, max_size=8))
def test_any_output_of_a_program_gives_an_observation_or_a_note(lines: list[bytes]) -> None:
    assert open_and_call(lambda: Saying(b"\n".join(lines) + b"\n"))


kinds = st.sampled_from(["application/json", "text/event-stream", "text/html", ""])
bodies = said | said.map(lambda body: b"event: message\ndata: " + body + b"\n\n")


answers = st.builds(
    lambda status, kind, body: raw(body, content_type=kind, status=status),
    st.sampled_from([200, 202, 204, 302, 400, 404, 500]), kinds, bodies,
)  # fmt: skip


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ModelEndpoint]:
    with ModelEndpoint() as serving:
        yield serving


@given(st.lists(answers, min_size=1, max_size=4))
def test_any_response_gives_an_observation_or_a_note(
    endpoint: ModelEndpoint, given_in_turn: list[Answer]
) -> None:
    turns = chain(given_in_turn, repeat(given_in_turn[-1]))
    endpoint.answer_with(lambda _: next(turns))
    open_and_call(Address(endpoint.url))
