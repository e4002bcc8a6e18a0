"""Tests of storing model calls as files."""

import json
from pathlib import Path

import pytest

from resolver.errors import ReplayExhausted
from resolver.llm.completion_files import FiledModel
from resolver.llm.replay import ReplayModel
from resolver.models.run import Completion, Tokens

SECRET = "canary-0a1b2c3d4e5f"


def filed(folder: Path) -> FiledModel:
    reply = Completion(model="m", text=f"the key is {SECRET}", tokens=Tokens(input=3, output=2))
    return FiledModel(ReplayModel([reply]), folder, lambda text: text.replace(SECRET, "[secret]"))


def test_a_call_is_stored_completely_and_without_secrets(tmp_path: Path) -> None:
    folder = tmp_path / "calls" / "run"
    messages = [{"role": "user", "content": [{"type": "text", "text": f"{SECRET} ☃"}]}]
    filed(folder).complete(messages, [{"type": "function"}])
    (path,) = folder.iterdir()
    assert SECRET not in path.read_text()
    call = json.loads(path.read_text())
    assert call["messages"][0]["content"][0]["text"] == "[secret] ☃"
    assert call["tools"] == [{"type": "function"}]
    assert call["completion"]["text"] == "the key is [secret]"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failed_call_is_stored_with_its_error(tmp_path: Path) -> None:
    model = filed(tmp_path)
    model.complete([])
    with pytest.raises(ReplayExhausted):
        model.complete([])
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["00001.json", "00002.json"]
    assert "one more" in json.loads((tmp_path / "00002.json").read_text())["error"]


def test_an_unwritable_folder_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    assert filed(tmp_path / "file" / "run").complete([]).text
    assert "was not written" in caplog.text
