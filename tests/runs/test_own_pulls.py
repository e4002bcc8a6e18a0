"""Work on a pull request of ours: its text says what is new, and it is a draft unless verified."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_pulls import UPSTREAM, PullScene, right

FIX = bash("sed -i 's/a - b/a + b/' calc.py")
SUMMARY = "Make add add\n\n`add` subtracted; it adds now."
MUL = bash("printf '\\ndef mul(a, b):\\n    return a * b\\n' >>calc.py")
MULTIPLIES = finish("Add mul to calc\n\nIt multiplies.")
TEST_CALC = """import unittest, calc
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(calc.add(2, 3), 5)
"""


class OwnScene(PullScene):
    """A pull request of ours for the issue."""

    def set_verify(self, verify: bool) -> None:
        """Turn the verification of the following runs on or off; at first it is off."""
        self.line.environment["RESOLVER_VERIFY"] = str(verify).lower()

    def opened(self, *answers: Answer) -> Issue:
        self.endpoint.script(FIX, *answers, finish(SUMMARY))
        right(self.action(self.github.event_issue_comment(self.mention())))
        self.github.advance(5)
        return self.pulls()[-1]

    def asked(self, pull: Issue, *answers: Answer, text: str = "@agent also add mul()") -> str:
        self.endpoint.script(MUL, *answers, MULTIPLIES)
        right(self.ask(text, on=pull))
        return self.told(pull)[-1]

    def go_on(self, *answers: Answer) -> str:
        """The comment of `continue` on the issue."""
        self.github.advance(5)
        self.endpoint.script(*answers, finish("Make add add\n\nMore of it."))
        right(self.action(self.github.event_issue_comment(self.mention(text="@agent continue"))))
        return self.bot_comments()[-1]


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[OwnScene]:
    made = OwnScene(github, command_line, model_endpoint)
    github.commit(UPSTREAM, "main", {"test_calc.py": TEST_CALC})
    yield made


def is_draft(pull: Issue) -> bool:
    assert pull.pull is not None
    return pull.pull.draft


def reviewers(pull: Issue) -> set[str]:
    assert pull.pull is not None
    return {each.login for each in pull.pull.reviewers}


def test_the_comment_says_that_it_is_a_draft_and_why(scene: OwnScene) -> None:
    scene.opened()
    told = scene.bot_comments()[-1]
    assert "The pull request is a **draft**: verification is disabled in the settings" in told
    assert "Please review it" not in told


def test_a_checked_change_is_ready_and_shown(scene: OwnScene) -> None:
    scene.set_verify(True)
    pull = scene.opened()
    assert not is_draft(pull) and reviewers(pull) == {"mona"}
    assert "Please review it" in scene.bot_comments()[-1]


def test_work_asked_for_on_our_pull_request_is_told_in_its_text(scene: OwnScene) -> None:
    pull = scene.opened()
    first, title = pull.body, pull.title
    scene.asked(pull)
    assert pull.title == title and "It multiplies." in pull.body
    assert first.split("-->\n\n", 1)[1].strip() in pull.body, "what stood there is gone"
    assert f"Fixes #{pull.number}" not in pull.body
    scene.github.advance(5)
    scene.endpoint.script(bash("echo 1 > one.txt"), finish("Add one\n\nThere is one."))
    right(scene.ask("@agent and one", on=pull))
    assert "It multiplies." in pull.body and "There is one." in pull.body


@pytest.mark.parametrize("edited", ["", "Mona's title"])
def test_a_title_that_has_become_too_narrow_is_written_anew(scene: OwnScene, edited: str) -> None:
    pull = scene.opened()
    if edited:
        scene.github.edit_issue(pull, title=edited)
    wider = {"message": "Add mul to calc", "pull_request_title": "Make add add, and add mul"}
    for added in ("mul", "div"):
        scene.endpoint.script(bash(f"touch {added}.py"), tool_call("finish", wider))
        right(scene.ask(f"@agent also add {added}()", on=pull))
        assert pull.title == (edited or wider["pull_request_title"])
        scene.github.advance(5)
    assert "Add mul to calc" in pull.body


def test_what_a_person_wrote_in_the_text_stays(scene: OwnScene) -> None:
    pull = scene.opened()
    scene.github.edit_issue(pull, body=f"{pull.body}\nA note of mona's.", title="Mona's title")
    scene.asked(pull)
    assert pull.title == "Mona's title"
    assert "A note of mona's." in pull.body and "It multiplies." in pull.body


def test_an_unverified_commit_makes_it_a_draft_again_and_says_so(scene: OwnScene) -> None:
    scene.set_verify(True)
    pull = scene.opened()
    scene.set_verify(False)
    told = scene.asked(pull)
    assert is_draft(pull)
    for text in (told, pull.body):
        assert "**The newest commit is not verified:** verification is disabled" in text
    assert "The pull request is **a draft again**" in told
    scene.github.advance(5)
    scene.set_verify(True)
    scene.endpoint.script(bash("echo 1 > one.txt"), finish("Add one\n\nThere is one."))
    right(scene.ask("@agent and one", on=pull))
    assert not is_draft(pull) and "not verified:" not in pull.body


def test_somebody_elses_pull_request_is_not_made_a_draft(scene: OwnScene) -> None:
    before = scene.pull.body
    told = scene.asked(scene.pull)
    assert scene.pull.pull is not None and not scene.pull.pull.draft
    assert scene.pull.body == before and "is not verified" in told and "draft" not in told


def test_a_text_that_can_not_be_written_is_told_and_ends_nothing(scene: OwnScene) -> None:
    pull = scene.opened()
    scene.github.fail_next("PATCH", r"/pulls/\d+$", 422, times=99)
    told = scene.asked(pull)
    assert "Resolver pushed the commit" in told and "could not update the text of" in told


def test_the_same_request_again_adds_nothing_to_the_text(scene: OwnScene) -> None:
    pull = scene.opened()
    event = scene.event("@agent also add mul()", pull)
    scene.endpoint.script(MUL, MULTIPLIES)
    scene.github.fail_next("PATCH", r"/issues/comments/\d+$", 422, times=99)
    scene.github.fail_next("POST", rf"/issues/{pull.number}/comments$", 422, times=99)
    assert scene.action(event).exit_code == 1
    body = pull.body
    scene.github.app.faults = type(scene.github.app.faults)()
    right(scene.action(event))
    assert body == pull.body and body.count("It multiplies.") == 1


def test_a_draft_that_becomes_ready_is_shown_to_its_reviewers(scene: OwnScene) -> None:
    pull = scene.opened()
    assert is_draft(pull) and not reviewers(pull)
    scene.set_verify(True)
    scene.go_on(bash("echo '# c' >> calc.py"))
    assert not is_draft(pull) and reviewers(pull) == {"mona"}


def test_a_draft_that_a_person_made_of_it_stays_one(scene: OwnScene) -> None:
    pull = scene.opened()
    scene.github.edit_issue(pull, body=f"{pull.body}\n\nA note of mona's.")
    scene.set_verify(True)
    scene.go_on(bash("echo '# c' >> calc.py"))
    assert pull.pull is not None and not is_draft(pull)
    pull.pull.draft = True
    told = scene.go_on(bash("echo '# d' >> calc.py"))
    assert (
        is_draft(pull)
        and "The pull request is a **draft** and stays one until you mark it as ready for review."
        in told
    )
    scene.go_on(bash("echo '# e' >> calc.py"))
    assert is_draft(pull)


def test_what_a_person_has_made_ready_is_no_draft_again(scene: OwnScene) -> None:
    pull = scene.opened()
    assert pull.pull is not None
    pull.pull.draft = False
    told = scene.asked(pull)
    assert not is_draft(pull) and "is not verified" in told and "is not verified" in pull.body


def test_a_merge_that_went_beside_leaves_the_text_of_the_pull_request(scene: OwnScene) -> None:
    pull = scene.opened()
    assert pull.pull is not None
    before = (pull.title, pull.body, is_draft(pull))
    other = {"calc.py": "def add(a, b):\n    return b - a\n"}
    scene.github.commit(UPSTREAM, "main", other, "Turn it", "mona")
    event = scene.event("@agent update", on=pull)
    answers = [bash("printf 'def add(a, b):\\n    return a + b\\n' > calc.py"), finish("Keep it")]

    def answered(_: object) -> Answer:
        if len(answers) == 2 and pull.pull:
            scene.github.commit(UPSTREAM, pull.pull.head, {"late.txt": "x\n"}, "Late", "mona")
        return answers.pop(0)

    scene.endpoint.answer_with(answered)
    right(scene.action(event))
    assert (pull.title, pull.body, is_draft(pull)) == before
    beside = scene.pulls()[-1]
    assert beside.pull is not None and beside.pull.base == pull.pull.head
    assert f"/pull/{beside.number}" in scene.told(pull)[-1]


def test_what_a_person_pushed_below_a_commit_of_ours_stays(scene: OwnScene) -> None:
    event = scene.event("@agent please divide by two")
    scene.github.commit(UPSTREAM, "half", {"late.txt": "x\n"}, "Late", "mona")
    scene.endpoint.script(bash("sed -i 's/x .*/x/' half.py; echo 1 >> half.py"), finish("Divide"))
    right(scene.action(event))
    before = scene.tip("half")
    scene.endpoint.script(bash("echo more > more.txt"), finish("More"))
    right(scene.ask("@agent continue, and more"))
    assert scene.git("rev-parse", "half^") == before
    assert scene.git("diff", "--name-only", before, "half") == "more.txt"


def test_what_could_not_be_pushed_is_not_published_past_later_work_on_the_issue(
    scene: OwnScene,
) -> None:
    """A run of either thread counts: the newest that was made public stands for those before."""
    pull = scene.opened()
    scene.github.fail_next("*", r"git-receive-pack", 403, times=2)
    scene.endpoint.script(MUL, MULTIPLIES)
    assert scene.ask("@agent also add mul()", on=pull).exit_code == 1
    assert "not allowed to push** it" in scene.told(pull)[-1]
    scene.go_on(bash("echo '# more' >>calc.py"))
    [branch] = scene.branches()
    before = scene.tip(branch)
    scene.ask("@agent publish", on=pull)
    assert "nothing to publish" in scene.told(pull)[-1]
    assert scene.tip(branch) == before
