"""Starts the MCP servers of a run and connects them to the agent's tools."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from resolver.config.mcp_servers import HostServer, choose_servers
from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.controller.controller import FINAL_STATES, HostHandlers
from resolver.errors import SandboxError
from resolver.events.actions import McpCall
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import SystemPrompt, Warned
from resolver.events.log import Event
from resolver.events.observations import ErrorObservation
from resolver.events.run_log import RunLog
from resolver.github.text.markdown import without_invisible
from resolver.mcp.host_process import HostProcess
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Address, Endpoint, Launch
from resolver.models.run import McpTool
from resolver.runs.resuming.rebuild import recorded_actions
from resolver.runtime.runtime import Runtime


@dataclass(frozen=True)
class McpSession:
    """The MCP tools of a run.

    tools: the tools that the agent can call.
    handlers: the handlers of their calls.
    interrupt: ends the call that is under way.
    warnings: problems for a person; the list grows while the run is active.
    """

    tools: tuple[McpTool, ...]
    handlers: HostHandlers
    interrupt: Callable[[], None]
    warnings: list[str]


@contextmanager
def open_mcp(
    settings: Settings,
    environment: Mapping[str, str],
    recording: Sequence[Event],
    runtime: Runtime,
    log: RunLog,
    redact: Callable[[str], str],
) -> Iterator[McpSession]:
    """Start the servers and yield their tools. They are stopped when the context is left.

    A resumed log keeps the tools that it started with. A replayed one gets the recorded answers, so
    that nothing outside of the sandbox is done twice.
    """
    warnings: list[str] = []
    logged_tools = _find_available_tools(log.state.events) or _find_available_tools(recording)
    if recording:
        calls = _RecordedCalls(recording)
        yield McpSession(logged_tools or (), {McpCall: calls}, lambda: None, warnings)
        return

    def warn(message: str) -> None:
        warnings.append(message)
        log.stream.add(Warned(about="mcp", message=message))

    def clean(text: str) -> str:
        return without_invisible(redact(text))

    endpoints: Sequence[Endpoint] = ()
    if log.state.run_state not in FINAL_STATES:
        chosen = choose_servers(settings.mcp_servers, settings.mcp)
        for warning in chosen.warnings:
            warn(f"MCP: {warning}")
        endpoints = (
            *(_host_endpoint(server, environment) for server in chosen.host),
            *(
                Endpoint(
                    program.name,
                    partial(runtime.start_program, program.server.command, program.server.args),
                    program.allows,
                    program.server.timeout,
                )
                for program in chosen.inside
            ),
        )
    with McpServers(endpoints, clean, _ResultStore(runtime), warn) as servers:
        tools = servers.tools if logged_tools is None else logged_tools
        yield McpSession(tools, {McpCall: servers.call}, servers.interrupt, warnings)


def _find_available_tools(events: Sequence[Event]) -> tuple[McpTool, ...] | None:
    """Return the tools that the log's agent was offered; None if no agent has started."""
    prompt = next((event for event in events if isinstance(event, SystemPrompt)), None)
    return prompt.mcp_tools if prompt else None


def _host_endpoint(chosen: HostServer, environment: Mapping[str, str]) -> Endpoint:
    server = chosen.server
    transport: Launch | Address
    if server.url:
        headers = {name: value.get_secret_value() for name, value in server.headers.items()}
        transport = Address(server.url, headers)
    else:
        secret = {name: value.get_secret_value() for name, value in server.env.items()}
        variables = {**server.variables, **secret}
        transport = partial(HostProcess, server.command, server.args, variables, environment)
    return Endpoint(chosen.name, transport, chosen.allows, server.timeout)


class _ResultStore:
    """Stores long results as files in the sandbox and returns their paths."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._numbers = count(1)

    def __call__(self, text: str) -> str | None:
        name = f"mcp-{next(self._numbers):04d}.txt"
        try:
            self._runtime.put_file(name, text.encode(errors="replace"))
        except SandboxError:
            return None
        return f"{self._runtime.scratch}/{name}"


class _RecordedCalls:
    """Answers calls with the recorded answers. Each answer is used once."""

    def __init__(self, recording: Sequence[Event]) -> None:
        self._answers: dict[str, deque[ObservationBase]] = defaultdict(deque)
        for recorded in recorded_actions(recording):
            if isinstance(recorded.action, McpCall) and isinstance(
                recorded.observation, ObservationBase
            ):
                self._answers[_call_key(recorded.action)].append(recorded.observation)

    def __call__(self, action: McpCall) -> ObservationBase:
        answers = self._answers[_call_key(action)]
        if answers:
            return answers.popleft()
        text = render(
            "agent/mcp_failed.md.j2",
            server=action.server,
            tool=action.name,
            how="gone",
            why="the recording has no such call, and a replay calls nothing outside",
        )
        return ErrorObservation(content=text.strip(), code="mcp")


def _call_key(action: McpCall) -> str:
    return McpCall(
        server=action.server, name=action.name, arguments=action.arguments
    ).model_dump_json()
