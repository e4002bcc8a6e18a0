"""Chooses and creates the agents of a run, their condensers and their rules for risky actions.

It also lists what a person can call with a slash command.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

from resolver.agents.base import Agent
from resolver.agents.definitions import AvailableTools, Definitions, read_definitions
from resolver.agents.readonly import READ_ONLY, REVIEWER
from resolver.agents.registry import AGENTS, find_agent_model, make_agent, require_agent
from resolver.agents.tools import did_you_mean
from resolver.config.agent_settings import parse_condenser
from resolver.config.settings import Settings
from resolver.controller.confirmation import (
    Analyzer,
    ApprovalNotifier,
    Confirmation,
    JudgingAnalyzer,
    notify_nobody,
)
from resolver.controller.controller import Condensers, CondensingView
from resolver.controller.delegation import Delegates, reply_in
from resolver.errors import UsageError
from resolver.events.lifecycle import AGENT, RunStarted, Warned
from resolver.events.log import Event
from resolver.events.stream import EventStream
from resolver.git.workspace import Workspace
from resolver.github.events.commands import COMMAND_NAMES
from resolver.github.text.markdown import with_invisible_shown
from resolver.llm.base import Model, ModelConfig
from resolver.llm.library import context_window
from resolver.llm.registry import provider_of
from resolver.llm.router import parse_rule
from resolver.memory.condensers.registry import Condensing, Parts, make_condenser
from resolver.memory.condensers.summaries import Asker
from resolver.memory.condensers.view import SERVICE, SizeBound
from resolver.models.approval import tool_risk
from resolver.models.run import Command, Trigger
from resolver.runs.wiring.models import (
    EMBEDDING,
    REPLAY,
    SCRIPTED,
    ModelOpener,
    has_own_model,
    service_config,
)
from resolver.security.risk.analyzer import RuleAnalyzer

RESERVED_NAMES = (*AGENTS, *COMMAND_NAMES)
"""Names that a repository's agents must not use."""

MAX_LISTED_NAMES = 50
"""Maximum number of names in one error message."""


@dataclass(frozen=True)
class Callee:
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


def is_allowed_model(model: str, settings: Settings) -> bool:
    """Return True if a repository's agent may use this model."""
    rules = (parse_rule(text).model for text in settings.model_rules)
    services = (service.model for name, service in settings.services.items() if name != EMBEDDING)
    configured = {"", settings.model, *settings.fallback_models, *rules, *services}
    provider = provider_of(model)
    # The provider of a name decides where the request, and with it the API key, is sent. A name
    # without a provider leaves that to litellm, so it is not accepted by similarity.
    same_provider = (
        bool(provider) and provider == provider_of(settings.model) and ":" not in provider
    )
    return model in configured or (settings.enable_agent_model_choice and same_provider)


def denied_models(agents: Definitions, used: Collection[str]) -> list[str]:
    """Return a warning for each of the used agents whose model is not allowed here."""
    return [
        f"{agent.path} asks for the model {agent.denied_model}, which is not set up here for it: "
        "it worked with the run's."
        for agent in agents.agents
        if agent.denied_model and agent.name in used
    ]


def callables(agents: Definitions, skills: Sequence[Callee] = ()) -> tuple[Callee, ...]:
    """Return everything that a slash can call, in addition to the commands: the repository's
    agents, its task skills and those built-in agents that make sense there.

    An agent or a command hides a skill of the same name.
    """
    defined = tuple(Callee(agent.name, agent.description) for agent in agents.agents)
    built_in = (
        Callee(name, agent.description)
        for name, agent in AGENTS.items()
        if agent.description and agent.is_callable
    )
    taken_names = {
        name.casefold() for name in (*RESERVED_NAMES, *(callee.name for callee in defined))
    }
    return (
        *defined,
        *(callee for callee in skills if callee.name.casefold() not in taken_names),
        *built_in,
    )


def agent_for(
    trigger: Trigger, name: str, agents: Definitions, skills: Collection[Callee] = ()
) -> str:
    """Return the name of the agent that does what was asked.

    name: the agent of the settings, for requests that name no agent or that name a skill. Raises
    UsageError, with a list of what can be called, for an unknown name.
    """
    if trigger.named:
        callee = _find_callee(trigger.named, callables(agents, tuple(skills)))
        name = name if callee in skills else callee.name
    elif trigger.command is Command.QUESTION:
        name = READ_ONLY
    elif trigger.command is Command.REVIEW:
        name = REVIEWER
    require_agent(name, agents.agents)
    return name


def _find_callee(name: str, callees: Sequence[Callee]) -> Callee:
    for callee in callees:
        if _normalize(callee.name) == _normalize(name):
            return callee
    names = [callee.name for callee in callees]
    listing = ", ".join(f"/{known}" for known in names[:MAX_LISTED_NAMES])
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if names[MAX_LISTED_NAMES:] else ""
    raise UsageError(
        f"there is no agent or task /{name} here{did_you_mean(name, names)}",
        f"what can be called: {listing}{more}. Without a slash, words are work to be done",
    )


def _normalize(name: str) -> str:
    return name.casefold().replace("_", "-")


def open_agent(settings: Settings, model: Model, available_tools: AvailableTools) -> Agent:
    """Return the agent that the settings name."""
    return make_agent(settings.agent, model, settings.dialect, available_tools)


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
        return make_agent(name, model, settings.dialect, delegate_tools)

    return make


def open_condensers(
    settings: Settings, open_model: ModelOpener, recording: Sequence[Event]
) -> Condensers:
    """Return the factory of condensers, for the run's own agent and its delegates.

    recording: events of the run that is replayed, whose condenser settings are then used.
    """
    config = service_config(settings, AGENT, settings.agent)[0]
    name, max_tokens = settings.condenser.stages, settings.condenser.max_tokens
    can_summarize = has_own_model(settings, SERVICE)
    started = next((event for event in recording if isinstance(event, RunStarted)), None)
    if started is not None:
        config = config.model_copy(update={"model": started.model, "base_url": None})
        name, max_tokens = started.condenser or name, started.condenser_max_tokens
        can_summarize = any((reply_in(event) or ("",))[0] == SERVICE for event in recording)
    stages = parse_condenser(name)
    bound = SizeBound(max_tokens, cache(lambda: _context_window(config)))

    def condenser_of(stream: EventStream) -> CondensingView:
        def warn(about: str, what: str) -> None:
            stream.add(Warned(about=about, message=what))

        def ask() -> Asker:
            return Asker(open_model(stream, SERVICE), warn)

        return Condensing(make_condenser(stages, Parts(bound, ask, can_summarize)))

    return condenser_of


def _context_window(config: ModelConfig) -> int | None:
    """Return the context window of a live model in tokens; None for a recording or a script, or if
    it is unknown."""
    has_no_model = config.model.startswith((REPLAY, SCRIPTED))
    return None if has_no_model else context_window(config)


JUDGE_SERVICE = "judge"


@dataclass(frozen=True)
class ApprovalRequester:
    """Asks a person to approve an action.

    seconds: how long a run waits for the answer. notify: shows the pending action to the person.
    """

    seconds: float = 0.0
    notify: ApprovalNotifier = notify_nobody


def open_confirmation(
    settings: Settings, root: str, open_model: ModelOpener, requester: ApprovalRequester
) -> Confirmation:
    """Return the confirmation rules of a run.

    root: the repository's folder in the sandbox.
    """
    options = settings.confirmation_options
    rules = RuleAnalyzer(root, dict(tool_risk(text) for text in options.tool_risks))

    def analyzer_of(stream: EventStream) -> Analyzer:
        if not options.judge:
            return rules
        return JudgingAnalyzer(rules, open_model(stream, JUDGE_SERVICE), stream)

    return Confirmation(
        policy=settings.confirmation,
        on_high=options.on_high,
        wait=requester.seconds,
        # a model's judgement is logged, so that a resumed run does not ask and pay for it again
        record_all=options.judge,
        analyzers=analyzer_of,
        display_form=with_invisible_shown,
        notify=requester.notify,
    )
