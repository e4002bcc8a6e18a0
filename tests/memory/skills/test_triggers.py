"""Tests of triggers, which match whole words."""

import pytest

from resolver.memory.skills.skill import find_trigger


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("flaky", "A Flaky one"),
        ("flaky", "why so flaky?"),
        ("flaky", "flaky-tests are many"),
        ("flaky test", "A flaky\n  test again"),
        ("CI", "the ci fails"),
        ("c++", "in C++ it works"),
        (".net", "on .NET 8"),
        ("node.js", "Node.js hangs"),
        ("go.mod", "edit go.mod"),
        ("docker", "dockerの設定が間違っている"),
        ("pytest", "运行pytest时失败"),
        ("データベース", "新しいデータベースが壊れた"),
        ("도커", "도커를 고쳐 주세요"),
    ],
)
def test_a_trigger_matches(trigger: str, text: str) -> None:
    assert find_trigger(trigger, text)


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("react", "preact, reactive, reactor, react_native"),
        ("test", "testing the latest contest"),
        ("c++", "the c language"),
        ("flaky test", "flaky. The test"),
    ],
)
def test_a_trigger_does_not_match(trigger: str, text: str) -> None:
    assert not find_trigger(trigger, text)
