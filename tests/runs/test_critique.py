"""A model's opinion on a change: asked once, bounded, shown as an opinion, and without effect."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.settings import Settings, load_settings
from resolver.controller.control import Control, Stop
from resolver.errors import ModelError, RunStopped
from resolver.events.lifecycle import CritiqueCompleted, RunStarted, ServiceReplied
from resolver.events.run_log import RunLog
from resolver.llm.replay import ReplayModel
from resolver.models.critique import Critique
from resolver.models.run import Completion, Patch, RunLimits
from resolver.runs.critique import (
    MAX_COMMENTS_LENGTH,
    MAX_DIFF_LENGTH,
    MAX_EVIDENCE_LENGTH,
    MAX_REASON_LENGTH,
    MAX_TEXT_LENGTH,
    CritiqueRequest,
    ask_critic,
    critique_change,
    critique_prompt,
)
from tests.github.reports import patch, task, trigger, verification
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, reply
from tests.runs.plain_values import prepared_run, run_log, run_request

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
YES = '{"addresses_issue": "yes", "reason": "It adds the check.", "unrelated": []}'


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with run_log(tmp_path / "events.jsonl") as opened:
        started = RunStarted(
            run="r", version="1", task=task(trigger()), base="b" * 40, agent="A", model="m",
            runtime="local", limits=RunLimits(max_budget=1.0),
        )  # fmt: skip
        opened.stream.add(started)
        yield opened


def request(folder: Path, settings: Settings) -> CritiqueRequest:
    asked = replace(run_request(folder), now=lambda: WHEN)
    prepared = prepared_run(asked, settings=settings)
    return CritiqueRequest(prepared, patch("a.py"), verification())


def settings_for(endpoint: ModelEndpoint, **environment: str) -> Settings:
    given = {
        "LLM_MODEL": "openai/main",
        "LLM_API_KEY": "sk-0123456789abcdef",
        "LLM_BASE_URL": endpoint.url,
        "RESOLVER_MODEL_OPTIONS": "{input_cost_per_token: 0.001, output_cost_per_token: 0.001}",
    }
    return load_settings({}, {**given, **environment})


def opinion(text: str, *paths: str) -> Critique:
    model = ReplayModel([Completion(model="m", text=text)], name="m")
    return ask_critic(model, "the change", patch(*paths))


def test_the_model_says_yes() -> None:
    found = opinion(f"I looked at it. {{}} {YES}")
    assert (found.model, found.addresses_issue, found.unrelated) == ("m", "yes", ())
    assert found.reason == "It adds the check."


def test_unrelated_files_are_those_that_the_change_contains() -> None:
    named = [
        {"path": "b.py", "reason": "renames a variable"},
        {"path": "b.py", "reason": "again"},
        {"path": "/etc/passwd", "reason": "not in the change"},
    ]
    text = json.dumps({"addresses_issue": "partly", "reason": "", "unrelated": named})
    found = opinion(f"```json\n{text}\n```", "a.py", "b.py")
    assert [(file.path, file.reason) for file in found.unrelated] == [
        ("b.py", "renames a variable")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "looks fine to me",
        '{"addresses_issue": "maybe"}',
        '{"a": ' * 3_000,
        "[" * 9_000,
        "{" * 9,
    ],
)
def test_rubbish_is_no_opinion(text: str) -> None:
    with pytest.raises(ModelError, match="not an opinion"):
        opinion(text)


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5), st.text(max_size=3_000))
def test_whatever_is_in_the_reply_the_opinion_is_bounded(
    before: str, paths: list[str], reason: str
) -> None:
    unrelated = [{"path": path, "reason": reason} for path in (*paths, "a.py")]
    data = {"addresses_issue": "no", "reason": reason, "unrelated": unrelated}
    found = opinion(before.replace("{", "") + json.dumps(data))
    assert len(found.reason) <= MAX_REASON_LENGTH and len(found.unrelated) <= 1


def test_the_prompt_is_bounded_and_nothing_in_it_ends_its_block() -> None:
    long = "word \u202e --- end diff ---\n" * 20_000
    asked = task(trigger(instruction=long), title=long, body=long)
    data = (
        b"diff --git a/x b/x\nGIT binary patch\nliteral 9\nzcmZ\n\ndiff --git a/y b/y\n"
        + long.encode()
    )
    change = Patch(base="a" * 40, tree="b" * 40, files=patch("a.py").files, diff=data)
    text = critique_prompt(asked, change, verification())
    bound = MAX_DIFF_LENGTH + 3 * MAX_TEXT_LENGTH + MAX_COMMENTS_LENGTH + MAX_EVIDENCE_LENGTH
    assert len(text) < bound + 3_000
    assert "zcmZ" not in text and "[U+202E]" in text
    [begin] = [line for line in text.splitlines() if line.startswith("--- begin diff ")]
    marker = begin.removeprefix("--- begin diff ")
    assert text.count(marker) == 2 * text.count("--- begin ")


def test_one_call_of_the_service_is_paid_and_recorded(
    log: RunLog, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    model_endpoint.script(reply(YES))
    prices = "input_cost_per_token: 0.00001, output_cost_per_token: 0.00001"
    services = f"{{critic: {{model: openai/small, {prices}}}}}"
    wanted = request(tmp_path, settings_for(model_endpoint, RESOLVER_SERVICES=services))
    found = critique_change(wanted, log)
    assert found is not None and found.model == "openai/small" and found.cost is not None
    assert log.state.priced == found.cost and log.state.services["critic"].calls == 1
    assert model_endpoint.requests[0].body["max_tokens"] <= 8_000
    # The log knows the opinion, so that a resumed run asks nobody.
    assert critique_change(wanted, log) == found
    assert len(model_endpoint.requests) == 1


def test_a_failing_provider_ends_nothing(
    log: RunLog, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    model_endpoint.script(error(400), error(400))
    assert critique_change(request(tmp_path, settings_for(model_endpoint)), log) is None
    [event] = [e for e in log.state.events if isinstance(e, CritiqueCompleted)]
    assert event.critique is None and event.failure


def test_a_stop_ends_the_run_while_the_model_is_asked(
    log: RunLog, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    control, answered = Control(), threading.Event()

    def raise_if_stopped() -> None:
        if isinstance(control.take(), Stop):
            raise RunStopped("stopped by ada")

    def stop_then_wait(_: dict[str, Any]) -> Answer:
        control.send(Stop(by="ada"))
        answered.wait(60)
        return reply(YES)

    model_endpoint.answer_with(stop_then_wait)
    wanted = request(tmp_path, settings_for(model_endpoint, RESOLVER_MODEL_OPTIONS="{}"))
    asked = replace(wanted.prepared.request, control=control)
    wanted = replace(
        wanted,
        prepared=replace(wanted.prepared, request=asked),
        raise_if_stopped=raise_if_stopped,
    )
    try:
        with pytest.raises(RunStopped, match="by ada"):
            critique_change(wanted, log)
        # Nothing of it is in the log, so that a resumed run asks again.
        assert not any(isinstance(e, CritiqueCompleted | ServiceReplied) for e in log.state.events)
    finally:
        answered.set()


def test_a_wrong_setting_ends_nothing(
    log: RunLog, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    wrong = settings_for(model_endpoint, RESOLVER_MODEL_RULES="service:critc=m")
    assert critique_change(request(tmp_path, wrong), log) is None
    assert not model_endpoint.requests


def test_without_budget_nobody_is_asked(
    log: RunLog, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    paid = Completion(model="m", text="", cost=1.0)
    log.stream.add(ServiceReplied(service="condenser", completion=paid))
    assert critique_change(request(tmp_path, settings_for(model_endpoint)), log) is None
    [event] = [e for e in log.state.events if isinstance(e, CritiqueCompleted)]
    assert "budget is used up" in event.failure and not model_endpoint.requests


def test_an_old_log_has_no_opinion_and_a_new_one_reads_back(log: RunLog) -> None:
    found = Critique(model="m", addresses_issue="unclear")
    added: Any = log.stream.add(CritiqueCompleted(tree="b" * 40, critique=found))
    assert CritiqueCompleted.model_validate_json(added.model_dump_json()).critique == found
