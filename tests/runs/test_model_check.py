"""The check of a model before the sandbox of its run: what ends the run, and what is logged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.errors import ModelAuthError
from resolver.events.lifecycle import ServiceReplied, StageCompleted
from resolver.events.run_log import RunLog
from resolver.models.run import RunLimits
from resolver.runs.execute import ExecutionRequest, execute
from resolver.runs.wiring.models import check_run_model
from tests.parts.model_endpoint import ModelEndpoint, error, reply
from tests.runs.plain_values import prepared_run, run_log, run_request
from tests.trace import sample

UNKNOWN = error(404, "no such model")
REFUSED = error(401, "bad key")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(sample.started())
        yield opened


def settings(endpoint: ModelEndpoint, **more: str) -> Settings:
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


def test_a_busy_provider_does_not_stop_the_run(model_endpoint: ModelEndpoint, log: RunLog) -> None:
    assert check(settings(model_endpoint), log) == ["run_started"]
    assert len(model_endpoint.checks) == 1


def test_the_reply_to_the_check_is_logged_with_its_cost(
    model_endpoint: ModelEndpoint, log: RunLog
) -> None:
    model_endpoint.readiness = reply("ready")
    prices = "{input_cost_per_token: 0.000001, output_cost_per_token: 0.000001}"
    given = settings(model_endpoint, RESOLVER_MODEL_OPTIONS=prices)
    assert check(given, log) == ["run_started", "service_replied", "model"]
    [replied] = [e for e in log.state.events if isinstance(e, ServiceReplied)]
    assert replied.service == "check"
    assert log.state.cost == replied.completion.cost == pytest.approx(0.00011)
    assert log.state.iterations == 0


def test_a_fallback_stands_in_for_an_unknown_model_but_not_for_a_refused_key(
    model_endpoint: ModelEndpoint, log: RunLog
) -> None:
    given = settings(
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
    prepared = prepared_run(request, settings=settings(model_endpoint, RESOLVER_RUNTIME="local"))
    with run_log(request.output.log) as log:
        with pytest.raises(ModelAuthError):
            execute(ExecutionRequest(prepared, (), tmp_path, RunLimits()), log)
        assert [event.kind for event in log.state.events] == ["run_started"]
