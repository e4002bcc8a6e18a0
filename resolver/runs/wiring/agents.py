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
from resolver.config.condenser_names import parse_condenser
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
    ModelOn,
    has_own_model,
    service_config,
)
from resolver.security.risk.analyzer import RuleAnalyzer

RESERVED = (*AGENTS, *COMMAND_NAMES)
"""Names that a repository's agents must not use."""

MOST_LISTED = 50
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
    found = read_definitions(workspace.read_trusted, workspace.trusted_paths(), RESERVED)
    agents = (
        each if may_ask(each.model, settings) else each.without_model() for each in found.agents
    )
    return Definitions(tuple(agents), found.problems)


def may_ask(model: str, settings: Settings) -> bool:
    """Return True if a repository's agent may use this model."""
    rules = (parse_rule(text).model for text in settings.model_rules)
    services = (each.model for name, each in settings.services.items() if name != EMBEDDING)
    configured = {"", settings.model, *settings.fallback_models, *rules, *services}
    provider = provider_of(model)
    # The provider of a name decides where the request, and with it the API key, is sent. A name
    # without a provider leaves that to litellm, so it is not accepted by similarity.
    alike = bool(provider) and provider == provider_of(settings.model) and ":" not in provider
    return model in configured or (settings.enable_agent_model_choice and alike)


def denied_models(agents: Definitions, used: Collection[str]) -> list[str]:
    """Return a warning for each of the used agents whose model is not allowed here."""
    return [
        f"{each.path} asks for the model {each.denied_model}, which is not set up here for it: "
        "it worked with the run's."
        for each in agents.agents
        if each.denied_model and each.name in used
    ]


def callables(agents: Definitions, skills: Sequence[Callee] = ()) -> tuple[Callee, ...]:
    """Return everything that a slash can call, in addition to the commands: the repository's
    agents, its task skills and those built-in agents that make sense there.

    An agent or a command hides a skill of the same name.
    """
    own = tuple(Callee(each.name, each.description) for each in agents.agents)
    built_in = (
        Callee(name, built.description)
        for name, built in AGENTS.items()
        if built.description and built.is_callable
    )
    taken = {name.casefold() for name in (*RESERVED, *(each.name for each in own))}
    return (*own, *(each for each in skills if each.name.casefold() not in taken), *built_in)


def agent_for(
    trigger: Trigger, wanted: str, agents: Definitions, skills: Collection[Callee] = ()
) -> str:
    """Return the name of the agent that does what was asked.

    wanted: the agent of the settings, for requests that name no agent or that name a skill. Raises
    UsageError, with a list of what can be called, for an unknown name.
    """
    if trigger.named:
        found = _named(trigger.named, callables(agents, tuple(skills)))
        wanted = wanted if found in skills else found.name
    elif trigger.command is Command.QUESTION:
        wanted = READ_ONLY
    elif trigger.command is Command.REVIEW:
        wanted = REVIEWER
    require_agent(wanted, agents.agents)
    return wanted


def _named(name: str, known: Sequence[Callee]) -> Callee:
    for each in known:
        if _plain(each.name) == _plain(name):
            return each
    names = [each.name for each in known]
    listed = ", ".join(f"/{each}" for each in names[:MOST_LISTED])
    more = f" and {len(names) - MOST_LISTED} more" if names[MOST_LISTED:] else ""
    raise UsageError(
        f"there is no agent or task /{name} here{did_you_mean(name, names)}",
        f"what can be called: {listed}{more}. Without a slash, words are work to be done",
    )


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def open_agent(settings: Settings, model: Model, offer: AvailableTools) -> Agent:
    """Return the agent that the settings name."""
    return make_agent(settings.agent, model, settings.dialect, offer)


def open_delegates(settings: Settings, model_on: ModelOn, offer: AvailableTools) -> Delegates:
    """Return the factory of the agents that the run's own agent delegates to.

    offer: the tools of the run's own agent.
    """

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        theirs = replace(offer, delegates=may_delegate, thread_labels=())
        asked = model_on(stream, agent=name, model=find_agent_model(name, offer.definitions))
        return make_agent(name, asked, settings.dialect, theirs)

    return make


def open_condensers(
    settings: Settings, model_on: ModelOn, recording: Sequence[Event]
) -> Condensers:
    """Return the factory of condensers, for the run's own agent and its delegates.

    recording: events of the run that is replayed, whose condenser settings are then used.
    """
    config = service_config(settings, AGENT, settings.agent)[0]
    name, most = settings.condenser.stages, settings.condenser.max_tokens
    writes = has_own_model(settings, SERVICE)
    begun = next((event for event in recording if isinstance(event, RunStarted)), None)
    if begun is not None:
        config = config.model_copy(update={"model": begun.model, "base_url": None})
        name, most = begun.condenser or name, begun.condenser_max_tokens
        writes = any((reply_in(event) or ("",))[0] == SERVICE for event in recording)
    stages = parse_condenser(name)
    bound = SizeBound(most, cache(lambda: _window(config)))

    def condenser_of(stream: EventStream) -> CondensingView:
        def warn(about: str, what: str) -> None:
            stream.add(Warned(about=about, message=what))

        def ask() -> Asker:
            return Asker(model_on(stream, SERVICE), warn)

        return Condensing(make_condenser(stages, Parts(bound, ask, writes)))

    return condenser_of


def _window(config: ModelConfig) -> int | None:
    """Return the context window of a live model in tokens; None for a recording or a script, or if
    it is unknown."""
    written = config.model.startswith((REPLAY, SCRIPTED))
    return None if written else context_window(config)


JUDGE_SERVICE = "judge"


@dataclass(frozen=True)
class ApprovalRequester:
    """Asks a person to approve an action.

    seconds: how long a run waits for the answer. tell: shows the pending action to the person.
    """

    seconds: float = 0.0
    tell: ApprovalNotifier = notify_nobody


def open_confirmation(
    settings: Settings, root: str, model_on: ModelOn, waiting: ApprovalRequester
) -> Confirmation:
    """Return the confirmation rules of a run.

    root: the repository's folder in the sandbox.
    """
    options = settings.confirmation_options
    rules = RuleAnalyzer(root, dict(tool_risk(text) for text in options.tool_risks))

    def analyzer_of(stream: EventStream) -> Analyzer:
        if not options.judge:
            return rules
        return JudgingAnalyzer(rules, model_on(stream, JUDGE_SERVICE), stream)

    return Confirmation(
        policy=settings.confirmation,
        on_high=options.on_high,
        wait=waiting.seconds,
        # a model's judgement is logged, so that a resumed run does not ask and pay for it again
        record_all=options.judge,
        analyzers=analyzer_of,
        display_form=with_invisible_shown,
        notify=waiting.tell,
    )
