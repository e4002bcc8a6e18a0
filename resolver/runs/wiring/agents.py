"""Chooses and creates the agents of a run, their condensers and their confirmation policy.

It also lists what a person can call with a slash command, and connects the agents to MCP servers.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count

from resolver.agents.base import Agent
from resolver.agents.built_in import BUILT_IN, READ_ONLY, REVIEWER
from resolver.agents.definitions import AvailableTools, Definitions, read_definitions
from resolver.agents.registry import find_agent_model, make_agent, require_agent
from resolver.agents.tools.calls import BROWSER, suggest_name
from resolver.config.agent_settings import parse_condensers
from resolver.config.mcp_servers import ChosenServer, McpServer, choose_servers
from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.controller.confirmation import (
    ApprovalNotifier,
    Confirmation,
)
from resolver.controller.controller import Condensers, HostHandlers
from resolver.controller.delegation import Delegates
from resolver.errors import SandboxError, UsageError
from resolver.events.actions import McpCall
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import AGENT, Condensation, RunStarted, SystemPrompt, Warned
from resolver.events.log import Event
from resolver.events.observations import ErrorObservation
from resolver.events.run_log import RunLog
from resolver.events.stream import EventStream
from resolver.git.workspace import Workspace
from resolver.github.events.commands import COMMAND_NAMES
from resolver.llm.base import ModelConfig
from resolver.llm.library import context_window
from resolver.mcp import servers as mcp_servers
from resolver.mcp.host_process import HostProcess
from resolver.mcp.transports import Address, Endpoint, Launch
from resolver.memory.condensers.registry import make_condenser
from resolver.memory.condensers.view import LogCondenser, max_tokens_for
from resolver.memory.condensers.with_model import SERVICE, SummaryClient
from resolver.models.approval import parse_action_rule, parse_tool_risk
from resolver.models.run import FINAL_STATES, Command, McpTool, Trigger
from resolver.runs.resuming.rebuild import recorded_actions
from resolver.runs.wiring.models import (
    REPLAY,
    SCRIPTED,
    ModelOpener,
    service_config,
)
from resolver.runtime.runtime import Runtime
from resolver.security.analyzer import LLMSecurityAnalyzer
from resolver.security.invisible_text import without_invisible

RESERVED_NAMES = (*(agent.name for agent in BUILT_IN), *COMMAND_NAMES)
"""Names that a repository's agents must not use."""

BROWSER_TOOLS = frozenset({
    "browser_click", "browser_console_messages", "browser_drag", "browser_evaluate",
    "browser_fill_form", "browser_find", "browser_handle_dialog", "browser_hover",
    "browser_navigate", "browser_navigate_back", "browser_network_requests", "browser_press_key",
    "browser_resize", "browser_select_option", "browser_snapshot", "browser_tabs",
    "browser_take_screenshot", "browser_type", "browser_wait_for",
})  # fmt: skip
"""The tools of Playwright's MCP server that agents get. Not among them: `browser_run_code_unsafe`,
which runs code in the server itself, and what reads files of the server's machine."""

BROWSER_SECONDS = 90.0
"""Time limit of one call in seconds; a page may take 60 to load."""


@dataclass(frozen=True)
class SlashCommand:
    """An agent or a skill that can be called with a slash. description: one line."""

    name: str
    description: str


def read_agents(workspace: Workspace, settings: Settings) -> Definitions:
    """Return the repository's own agents, from its default branch.

    An agent keeps its model only if the operator allows that model, since the operator's key pays
    for it.
    """
    definitions = read_definitions(
        workspace.read_trusted, workspace.trusted_paths(), RESERVED_NAMES
    )
    agents = (
        agent if is_allowed_model(agent.model, settings) else agent.without_model()
        for agent in definitions.agents
    )
    return Definitions(tuple(agents), definitions.problems)


def is_allowed_model(model: str | None, settings: Settings) -> bool:
    """Return True if a repository's agent may use this model."""
    services = (service.model for service in settings.services.values())
    configured = {None, settings.model, *settings.model_options.fallbacks, *services}
    return model in configured


def denied_models(agents: Definitions, used: Collection[str]) -> list[str]:
    """Return a warning for each of the used agents whose model is not allowed here."""
    return [
        f"{agent.path} asks for the model {agent.denied_model}, which the settings do not allow "
        "for it, so the agent used the model of the run."
        for agent in agents.agents
        if agent.denied_model and agent.name in used
    ]


def list_slash_commands(
    agents: Definitions, skills: Sequence[SlashCommand] = ()
) -> tuple[SlashCommand, ...]:
    """Return the slash commands besides those of Resolver itself: the repository's
    agents, its task skills and those built-in agents that make sense there.

    An agent or a command hides a skill of the same name.
    """
    defined = tuple(SlashCommand(agent.name, agent.description) for agent in agents.agents)
    built_in = (
        SlashCommand(agent.name, agent.description) for agent in BUILT_IN if agent.is_callable
    )
    taken_names = {
        name.casefold() for name in (*RESERVED_NAMES, *(command.name for command in defined))
    }
    return (
        *defined,
        *(command for command in skills if command.name.casefold() not in taken_names),
        *built_in,
    )


def choose_agent(
    trigger: Trigger, name: str, agents: Definitions, skills: Collection[SlashCommand] = ()
) -> str:
    """Return the name of the agent that does what was asked.

    name: the agent of the settings, for requests that name no agent or that name a skill. Raises
    UsageError, with a list of what can be called, for an unknown name.
    """
    if trigger.named:
        command = _find_slash_command(trigger.named, list_slash_commands(agents, tuple(skills)))
        name = name if command in skills else command.name
    elif trigger.command is Command.QUESTION:
        name = READ_ONLY.name
    elif trigger.command is Command.REVIEW:
        name = REVIEWER.name
    require_agent(name, agents.agents)
    return name


def _find_slash_command(name: str, commands: Sequence[SlashCommand]) -> SlashCommand:
    for command in commands:
        if _normalize(command.name) == _normalize(name):
            return command
    names = [command.name for command in commands]
    listing = ", ".join(f"/{known}" for known in names)
    raise UsageError(
        f"there is no agent or task /{name} here{suggest_name(name, names)}",
        f"use one of {listing}; without a slash, the text describes work to be done",
    )


def _normalize(name: str) -> str:
    return name.casefold().replace("_", "-")


def open_delegates(
    settings: Settings, open_model: ModelOpener, available_tools: AvailableTools
) -> Delegates:
    """Return the factory of the agents that the run's own agent delegates to.

    available_tools: the tools of the run's own agent.
    """

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        delegate_tools = replace(available_tools, delegates=may_delegate, thread_labels=())
        model = open_model(
            stream, agent=name, model=find_agent_model(name, available_tools.definitions)
        )
        return make_agent(name, model, settings.model_options.dialect, delegate_tools)

    return make


def open_condensers(
    settings: Settings, open_model: ModelOpener, recording: Sequence[Event]
) -> Condensers:
    """Return the factory of condensers, for the run's own agent and its delegates.

    recording: events of the run that is replayed, whose condenser settings are then used.
    """
    config = service_config(settings, AGENT, settings.agent)[0]
    listed = settings.condenser
    started = next((event for event in recording if isinstance(event, RunStarted)), None)
    if started is not None:
        config = config.model_copy(update={"model": started.model, "base_url": None})
        listed = started.condenser or listed
    names = parse_condensers(listed)
    is_condensed = any(isinstance(event, Condensation) for event in recording)
    # A recording in which nothing was condensed has stayed below any bound, and the model's window
    # is not worth loading litellm.
    has_window = is_condensed or not recording
    max_tokens = cache(lambda: max_tokens_for(_context_window(config) if has_window else None))

    def condenser_of(stream: EventStream) -> LogCondenser:
        def warn(about: str, what: str) -> None:
            stream.add(Warned(about=about, message=what))

        def ask() -> SummaryClient:
            return SummaryClient(open_model(stream, SERVICE), warn)

        return LogCondenser(make_condenser(names, ask), max_tokens)

    return condenser_of


def _context_window(config: ModelConfig) -> int | None:
    """Return the context window of a live model in tokens; None for a recording or a script, or if
    it is unknown."""
    has_no_model = config.model.startswith((REPLAY, SCRIPTED))
    return None if has_no_model else context_window(config)


def open_confirmation(settings: Settings, notify: ApprovalNotifier | None) -> Confirmation:
    """Return which actions of a run need the approval of a person, and how it is asked for.

    notify: see `Confirmation`.
    """
    return Confirmation(
        mode=settings.confirmation,
        ask=tuple(parse_action_rule(text) for text in settings.confirm_actions),
        refuse=tuple(parse_action_rule(text) for text in settings.refuse_actions),
        analyzer=LLMSecurityAnalyzer(dict(map(parse_tool_risk, settings.mcp_tool_risks))),
        notify=notify,
    )


@dataclass(frozen=True)
class McpSession:
    """The MCP tools of a run.

    tools: the tools that the agent can call.
    handlers: the handlers of their calls.
    interrupt: ends the call that is under way.
    """

    tools: tuple[McpTool, ...]
    handlers: HostHandlers
    interrupt: Callable[[], None]


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
    logged_tools = _find_available_tools(log.state.events) or _find_available_tools(recording)
    if recording:
        calls = _RecordedCalls(recording)
        yield McpSession(logged_tools or (), {McpCall: calls}, lambda: None)
        return

    def warn(message: str) -> None:
        log.stream.add(Warned(about="mcp", message=message))

    def clean(text: str) -> str:
        return without_invisible(redact(text))

    endpoints: Sequence[Endpoint] = ()
    if log.state.run_state not in FINAL_STATES:
        if settings.browser_image and not runtime.has_browser:
            warn(render("run/no_browser.md.j2").strip())
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
        if runtime.has_browser:
            allows = BROWSER_TOOLS.__contains__
            browser = Endpoint(BROWSER, runtime.start_browser, allows, BROWSER_SECONDS)
            endpoints = (*endpoints, browser)
    if not endpoints and not logged_tools:
        yield McpSession((), {}, lambda: None)
        return
    with mcp_servers.McpServers(
        endpoints, clean, partial(_store_result, runtime, count(1)), warn
    ) as servers:
        tools = servers.tools if logged_tools is None else logged_tools
        yield McpSession(tools, {McpCall: servers.call}, servers.interrupt)


def _find_available_tools(events: Sequence[Event]) -> tuple[McpTool, ...] | None:
    """Return the tools that the log's agent was offered; None if no agent has started."""
    prompt = next((event for event in events if isinstance(event, SystemPrompt)), None)
    return prompt.mcp_tools if prompt else None


def _host_endpoint(chosen: ChosenServer[McpServer], environment: Mapping[str, str]) -> Endpoint:
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


def _store_result(runtime: Runtime, numbers: Iterator[int], text: str) -> str | None:
    """Store a long result as a file in the sandbox and return its path; None if it can't be."""
    name = f"mcp-{next(numbers):04d}.txt"
    try:
        runtime.put_file(name, text.encode(errors="replace"))
    except SandboxError:
        return None
    return f"{runtime.scratch}/{name}"


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
