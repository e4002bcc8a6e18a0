"""Who does a run's work: what a person may call by a slash, which agent a request asks for, and the
agents themselves.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from resolver.agents.available_tools import AvailableTools
from resolver.agents.base import Agent
from resolver.agents.definitions import Definitions, read_definitions
from resolver.agents.readonly import READ_ONLY
from resolver.agents.registry import AGENTS, make_agent, model_of, require_agent
from resolver.agents.reviewer import REVIEWER
from resolver.agents.tool_calls import did_you_mean
from resolver.config.settings import Settings
from resolver.controller.delegation import Delegates
from resolver.errors import UsageError
from resolver.events.stream import EventStream
from resolver.git.workspace import Workspace
from resolver.github.events.commands import COMMAND_NAMES
from resolver.llm.base import Model
from resolver.llm.registry import provider_of
from resolver.llm.router import parse_rule
from resolver.models.run import Command, Trigger
from resolver.runs.wiring.models import ModelOn

RESERVED = (*AGENTS, *COMMAND_NAMES)
"""Names that nothing of a repository may have."""

MOST_LISTED = 50
"""Names in one sentence."""


@dataclass(frozen=True)
class Callee:
    """Something that a slash calls. description: one line."""

    name: str
    description: str


def read_agents(workspace: Workspace, settings: Settings) -> Definitions:
    """The repository's own agents, from its default branch, on models that the operator pays for:
    the key is theirs, and so is the bill."""
    found = read_definitions(workspace.read_trusted, workspace.trusted_paths(), RESERVED)
    agents = (
        each if may_ask(each.model, settings) else each.without_model() for each in found.agents
    )
    return Definitions(tuple(agents), found.problems)


def may_ask(model: str, settings: Settings) -> bool:
    """Whether a repository's agent may have this model."""
    rules = (parse_rule(text).model for text in settings.model_rules)
    services = (each.model for each in settings.services.values())
    configured = {"", settings.model, *settings.fallback_models, *rules, *services}
    provider = provider_of(model)
    # Without a provider before it, a name alone decides where it is asked, and so the key goes.
    alike = bool(provider) and provider == provider_of(settings.model) and ":" not in provider
    return model in configured or (settings.agents_choose_models and alike)


def denied_models(agents: Definitions, used: Collection[str]) -> list[str]:
    """What to say of the agents, of those that were used, whose model is not to be had."""
    return [
        f"{each.path} asks for the model {each.denied}, which is not set up here for it: "
        "it worked with the run's."
        for each in agents.agents
        if each.denied and each.name in used
    ]


def callables(agents: Definitions, skills: Sequence[Callee] = ()) -> tuple[Callee, ...]:
    """All that a slash calls beside the commands: the repository's agents, its task skills, and
    those of the product's agents that make sense there. An agent or a command hides a skill of
    its name."""
    own = tuple(Callee(each.name, each.description) for each in agents.agents)
    built_in = (
        Callee(name, built.description)
        for name, built in AGENTS.items()
        if built.description and built.callable
    )
    taken = {name.casefold() for name in (*RESERVED, *(each.name for each in own))}
    return (*own, *(each for each in skills if each.name.casefold() not in taken), *built_in)


def agent_for(
    trigger: Trigger, wanted: str, agents: Definitions, skills: Collection[Callee] = ()
) -> str:
    """The agent that does what was asked for.

    wanted: the settings' agent, for what names none. A skill is for that one, too. Raises
    UsageError that lists what there is.
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
        f"nothing here is called /{name}{did_you_mean(name, names)}",
        f"what can be called: {listed}{more}. Without a slash, words are work to be done",
    )


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def open_agent(settings: Settings, model: Model, offer: AvailableTools) -> Agent:
    """The agent that the settings name."""
    return make_agent(settings.agent, model, settings.dialect, offer)


def open_delegates(settings: Settings, model_on: ModelOn, offer: AvailableTools) -> Delegates:
    """What makes the agents that the run's own hands work to. offer: the run's own agent's."""

    def make(name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        theirs = replace(offer, delegates=may_delegate, threads=())
        asked = model_on(stream, agent=name, model=model_of(name, offer.definitions))
        return make_agent(name, asked, settings.dialect, theirs)

    return make
