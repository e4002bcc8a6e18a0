"""The content of outcome.json, from plain values of the stages."""

from dataclasses import replace
from pathlib import Path

from resolver.config.settings import load_settings
from resolver.events.lifecycle import ModelReplied, ServiceReplied
from resolver.events.log import Event
from resolver.events.run_log import RunLog
from resolver.models.run import Completion, Tokens
from resolver.runs.reporting import outcome_file_of
from resolver.runs.stages import OpenedLog
from tests.runs.plain_values import executed_values, run_request
from tests.trace import sample


def unchanged(event: Event) -> Event:
    return event


def test_costs_are_distinguished_by_model_and_by_service(tmp_path: Path) -> None:
    values = executed_values(run_request(tmp_path))
    large = Completion(model="large", cost=0.25, tokens=Tokens(input=10))
    small = Completion(model="small", cost=None)
    with RunLog(tmp_path / "events.jsonl", unchanged, lambda: sample.START) as log:
        log.stream.add(sample.started())
        for completion in (large, small, large):
            log.stream.add(ModelReplied(completion=completion))
        log.stream.add(ServiceReplied(service="check", completion=large))
        values = values.with_value(OpenedLog(log))
        written = outcome_file_of(values, values.publication, None, 0)
    calls = {name: (model.calls, model.cost) for name, model in written.models.items()}
    assert calls == {"large": (3, 0.75), "small": (1, None)}
    assert written.models["large"].tokens.input == 30
    by_service = {name: (s.calls, s.cost, s.priced) for name, s in written.services.items()}
    assert by_service == {"agent": (3, None, 0.5), "check": (1, 0.25, 0.25)}


def test_the_model_is_named_without_the_folder_of_its_file(tmp_path: Path) -> None:
    values = executed_values(run_request(tmp_path))
    for kind in ("scripted", "replay"):
        settings = load_settings({}, {"LLM_MODEL": f"{kind}:/home/mona/replies.yml"})
        named = outcome_file_of(replace(values, settings=settings), values.publication, None, 0)
        assert named.model == f"{kind}:replies.yml"
