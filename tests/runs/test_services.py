"""Each service and each agent asks the model that the settings name for it."""

from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.controller.control import Control
from resolver.errors import (
    ContextWindowExceeded,
    ModelAuthError,
    ModelError,
    ReplayExhausted,
    UsageError,
)
from resolver.events.actions import CondensationRequest
from resolver.events.base import Source
from resolver.events.lifecycle import (
    ModelReplied,
    ServiceReplied,
    StageCompleted,
    Warned,
)
from resolver.events.run_log import RunLog
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream, utc_now
from resolver.models.run import Completion
from resolver.runs.execute import ExecutionRequest, execute
from resolver.runs.wiring.models import ModelOpener, check_run_model, service_config
from resolver.security.redaction import Redactor
from tests.parts.model_endpoint import ModelEndpoint, error, reply
from tests.runs.plain_values import prepared_run, run_log, run_request

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
KEY = "sk-main-0123456789abcdef"
OTHER_KEY = "sk-other-0123456789abcdef"


def settings(services: str = "", **environment: str) -> Settings:
    given = {"LLM_MODEL": "main", "LLM_API_KEY": KEY, "RESOLVER_SERVICES": services, **environment}
    return load_settings({}, given)


class Scenario:
    """A stream with a state, and models that talk to the endpoint."""

    def __init__(self, given: Settings, recording: list[Any] | None = None) -> None:
        self.state = State()
        self.stream = EventStream(MemoryStore(), Redactor(given.secrets), utc_now)
        self.stream.subscribe("state", self.state.apply, essential=True)
        interruptible = Control().interruptible
        self.open_model = ModelOpener(given, recording or [], self.state, interruptible)

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.state.events if isinstance(event, kind)]


def test_each_service_asks_its_own_model_and_the_log_says_who_asked(
    model_endpoint: ModelEndpoint,
) -> None:
    model_endpoint.answer_with(lambda body: reply(f"I am {body['model']}"))
    scenario = Scenario(settings("{condenser: small}", LLM_BASE_URL=model_endpoint.url))
    texts = [
        scenario.open_model(scenario.stream, service).complete(HELLO).text
        for service in ("agent", "condenser")
    ]
    assert texts == ["I am main", "I am small"]
    assert len(scenario.events_of(ModelReplied)) == 1
    assert [event.service for event in scenario.events_of(ServiceReplied)] == ["condenser"]


ELSEWHERE = "base_url: 'http://127.0.0.1:9/v1'"


@pytest.mark.parametrize(
    ("services", "key", "set_by"),
    [
        ("{condenser: openai/small}", KEY, "LLM_API_KEY"),
        # A service at another address or of another provider is sent no key but its own.
        (f"{{condenser: {{{ELSEWHERE}}}}}", None, "RESOLVER_SERVICES (condenser)"),
        (f"{{condenser: {{{ELSEWHERE}, api_key: {OTHER_KEY}}}}}", OTHER_KEY, "RESOLVER_SERVICES"),
        ("{condenser: bedrock/x}", None, "AWS_ACCESS_KEY_ID"),
    ],
)
def test_a_service_has_the_runs_key_only_for_the_runs_own_provider(
    services: str, key: str | None, set_by: str
) -> None:
    given = settings(services, LLM_MODEL="openai/main", LLM_BASE_URL="http://127.0.0.1:8/v1")
    config, _ = service_config(given, "condenser")
    found = config.api_key.get_secret_value() if config.api_key else None
    assert found == key
    assert set_by in config.set_by.api_key


@pytest.mark.parametrize(
    ("services", "agent", "asked", "model"),
    [
        ("{agent: openai/large, mine: openai/small}", "mine", "", "openai/small"),
        ("{agent: openai/large, mine: openai/small}", "other", "", "openai/large"),
        ("{mine: openai/set}", "mine", "openai/asked", "openai/set"),
        ("{mine: {temperature: 0}}", "mine", "openai/asked", "openai/asked"),
    ],
)
def test_the_operators_model_of_an_agent_comes_before_that_of_its_definition(
    services: str, agent: str, asked: str, model: str
) -> None:
    given = settings(services, LLM_MODEL="openai/main")
    assert service_config(given, "agent", agent, asked)[0].model == model


def test_the_key_of_a_service_is_a_secret() -> None:
    given = settings(f"{{condenser: {{api_key: {OTHER_KEY}}}}}")
    assert OTHER_KEY in given.secrets
    assert OTHER_KEY not in repr(given) + given.model_dump_json()
    with pytest.raises(UsageError) as raised:
        settings(f"{{condenser: {{api_key: {OTHER_KEY}, num_retries: many}}}}")
    assert OTHER_KEY not in raised.value.what + raised.value.next_step


def test_recorded_replies_are_given_back_by_service_and_in_order(
    model_endpoint: ModelEndpoint,
) -> None:
    numbers = iter(range(10))
    model_endpoint.answer_with(lambda body: reply(f"{body['model']} {next(numbers)}"))
    live = Scenario(settings("{condenser: small}", LLM_BASE_URL=model_endpoint.url))
    order = ("agent", "condenser", "agent", "condenser", "condenser")
    models = {name: live.open_model(live.stream, name) for name in set(order)}
    said = [models[name].complete(HELLO).text for name in order]

    again = Scenario(settings(LLM_MODEL="replay:log"), live.state.events)
    models = {name: again.open_model(again.stream, name) for name in set(order)}
    assert [models[name].complete(HELLO).text for name in order] == said
    with pytest.raises(ReplayExhausted):
        models["agent"].complete(HELLO)
    with pytest.raises(ReplayExhausted):
        again.open_model(again.stream, "condenser").complete(HELLO)


def test_recorded_failures_of_a_model_happen_again_at_their_place() -> None:
    """Those that a run survives: a conversation that does not fit, a condenser without notes."""
    recording: list[Any] = [
        CondensationRequest(source=Source.AGENT),
        Warned(about="condenser", message="out of order"),
        ModelReplied(completion=Completion(model="m", text="shorter now")),
    ]
    again = Scenario(settings(LLM_MODEL="replay:log"), recording)
    agent = again.open_model(again.stream, "agent")
    with pytest.raises(ContextWindowExceeded):
        agent.complete(HELLO)
    assert agent.complete(HELLO).text == "shorter now"
    with pytest.raises(ModelError, match="out of order"):
        again.open_model(again.stream, "condenser").complete(HELLO)


UNKNOWN = error(404, "no such model")
REFUSED = error(401, "bad key")


def endpoint_settings(endpoint: ModelEndpoint, **more: str) -> Settings:
    environment = {
        "LLM_MODEL": "openai/scripted",
        "LLM_API_KEY": "sk-check",
        "LLM_BASE_URL": endpoint.url,
        "RESOLVER_MODEL_OPTIONS": "{num_retries: 0}",
    }
    return load_settings({}, environment | more, {})


def check(given: Settings, log: RunLog) -> list[str]:
    """Check the model, and return what the log has then."""
    check_run_model(given, "CodeActAgent", "", log)
    return [e.stage if isinstance(e, StageCompleted) else e.kind for e in log.state.events]


def test_the_reply_to_the_check_is_logged_with_its_cost(
    model_endpoint: ModelEndpoint, log: RunLog
) -> None:
    model_endpoint.readiness = reply("ready")
    prices = "{input_cost_per_token: 0.000001, output_cost_per_token: 0.000001}"
    given = endpoint_settings(model_endpoint, RESOLVER_MODEL_OPTIONS=prices)
    assert check(given, log) == ["run_started", "service_replied", "model"]
    [replied] = [e for e in log.state.events if isinstance(e, ServiceReplied)]
    assert replied.service == "check"
    assert log.state.cost == replied.completion.cost == pytest.approx(0.00011)
    assert log.state.iterations == 0


def test_a_fallback_stands_in_for_an_unknown_model_but_not_for_a_refused_key(
    model_endpoint: ModelEndpoint, log: RunLog
) -> None:
    given = endpoint_settings(
        model_endpoint, RESOLVER_MODEL_OPTIONS="{num_retries: 0, fallbacks: [openai/spare]}"
    )
    model_endpoint.readiness = UNKNOWN
    assert check(given, log) == ["run_started"]
    model_endpoint.readiness = REFUSED
    with pytest.raises(ModelAuthError):
        check(given, log)


def test_a_refused_key_ends_a_run_before_its_sandbox(
    model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A set-up that takes minutes would otherwise run in vain."""
    model_endpoint.readiness = REFUSED
    request = run_request(tmp_path)
    # There is no clone: a sandbox could not check it out.
    prepared = prepared_run(
        request, settings=endpoint_settings(model_endpoint, RESOLVER_RUNTIME="local")
    )
    with run_log(request.output.log) as log:
        with pytest.raises(ModelAuthError):
            execute(ExecutionRequest(prepared, log, tmp_path))
        assert [event.kind for event in log.state.events] == ["run_started"]
