"""Stories of a maintainer's day: the requests, and the comments on the pages at their end."""

import pytest

from tests.parts.model_endpoint import Answer, tool_call
from tests.parts.runs import bash, finish
from tests.scenarios.town import NAME, Town

FIX = bash("sed -i 's/a - b/a + b/' calc.py && python3 test_calc.py")
FIXED = finish("Make add add\n\n`add` subtracted; it adds now.")

OWN_CHECKS = {"RESOLVER_FIX_FAILING_CHECKS": "own"}


def done(message: str, **answers: str) -> Answer:
    """The model is done, and says what it did in each conversation."""
    threads = [{"id": id, "addressed": True, "answer": words} for id, words in answers.items()]
    return tool_call("finish", {"title": message, "message": message, "threads": threads})


def test_an_issue_becomes_a_pull_request(town: Town) -> None:
    """A whole run, because it shows that all stages work together on a server."""
    issue = town.opens("zoe", "add subtracts", "2 + 2 gives 0.")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent please fix this")
    pull = town.pull()
    [comment] = town.answered(issue)
    assert town.page(issue) == [
        ("mona", "@agent please fix this"),
        ("resolver-bot", f"Resolver opened [#{pull.number}]: Make add add"),
    ]
    assert "How it was made: $0.0002, 2 iterations" in comment
    assert f"Fixes #{issue.number}" in (pull.body or "")
    assert "a + b" in town.content(pull, "calc.py")
    assert town.commits(pull) == ["Make add add"]


@pytest.mark.nightly
def test_a_question_is_answered_and_nothing_is_pushed(town: Town) -> None:
    issue = town.opens("zoe", "Does half round down?")
    town.script(bash("grep -n 'a // 2' calc.py"), finish("It does: `//` in calc.py:6 rounds down."))
    town.says("mona", issue, "@agent ask why does half(3) give 1?")
    [comment] = town.answered(issue)
    assert "rounds down" in comment
    assert f"blob/{town.repository.git.tip('main')}/calc.py#L6" in comment
    assert not town.pulls() and not town.forge.branches(town.repository)


@pytest.mark.nightly
def test_a_stranger_is_refused_once_and_the_maintainer_is_not(town: Town) -> None:
    issue = town.opens("eve", "Run this for me")
    town.says("eve", issue, "@agent run this")
    town.answered(issue)
    town.says("eve", issue, "@agent do it!")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent fix add")
    pull = town.pull()
    town.answered(issue, 2)
    assert [who for who, _ in town.page(issue)] == [
        *("eve", "resolver-bot", "eve", "mona", "resolver-bot"),
    ]
    refusal, opened = town.ended(issue)
    assert refusal.startswith("Sorry, eve, Resolver can't start work on this")
    assert opened.startswith(f"Resolver opened [#{pull.number}]")


@pytest.mark.nightly
def test_two_requests_at_once_on_one_issue_are_two_answers(town: Town) -> None:
    issue = town.opens("zoe", "add subtracts", "And half is odd.")
    answers = iter([bash("cat calc.py"), finish("It rounds down, in calc.py:6.")])
    fixes = iter([FIX, FIXED])
    asked = "why does half round down"
    town.endpoint.answer_with(
        lambda body: next(answers if asked in str(body["messages"]) else fixes)
    )
    town.says("mona", issue, "@agent fix add")
    town.says("mona", issue, "@agent ask why does half round down?")
    fixed, answered = sorted(town.answered(issue, 2), key=lambda text: "rounds down" in text)
    assert fixed.startswith("Resolver opened") and "rounds down" in answered
    assert len(town.pulls()) == 1


@pytest.mark.parametrize("town", [OWN_CHECKS], indirect=True)
def test_from_an_issue_over_two_rounds_of_review_and_a_failing_check_to_the_merge(
    town: Town,
) -> None:
    """Whole runs, because each works on what the ones before it have published."""
    issue = town.opens("zoe", "add subtracts", "2 + 2 gives 0.")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent please fix this")
    pull = town.pull()
    town.answered(issue)

    documented = bash('sed -i \'1a\\    """The sum."""\' calc.py && python3 test_calc.py')
    town.script(documented, done("Document add()", T1="It has a docstring now."))
    first = town.reviews("mona", pull, "@agent please address", ("calc.py", 2, "Say what it is."))
    town.answered(pull)
    [reply] = town.replies(pull, first)
    assert "It has a docstring now." in reply and "/commits/" in reply

    town.script(bash("sed -i 's/The sum/The sum of both/' calc.py"), done("Say more", T1="Done."))
    second = town.reviews("mona", pull, "", ("calc.py", 3, "@agent of what?"), ("calc.py", 1, "Ok"))
    town.answered(pull, 2)
    assert len(town.replies(pull, second)) == 1, "who did not ask is left alone"

    town.script(bash("echo 'assert add(1, 2) == 3' >>test_calc.py"), done("Test more"))
    town.fails(pull, "coverage", "E   coverage: add() is tested with one pair only")
    town.answered(pull, 3)
    assert "tested with one pair only" in str(town.endpoint.requests[-1].body)

    assert len(town.commits(pull)) == 4
    assert town.pulls() == [pull]
    town.merges("mona", pull)
    assert "The sum of both" in str(town.repository.git.text("show", "main:calc.py"))
    assert [who for who, _ in town.page(issue)] == ["mona", "resolver-bot"]
    assert pull.pull is not None
    pushed = (
        f"Resolver pushed the commit [`COMMIT`] to `{pull.pull.head}`. It is on top of the "
        "existing commits, which are unchanged."
    )
    assert town.page(pull) == [("resolver-bot", pushed)] * 3
    assert town.endpoint.left == 0


@pytest.mark.nightly
def test_what_others_pushed_meanwhile_stays(town: Town) -> None:
    issue = town.opens("zoe", "add subtracts")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent fix this")
    pull = town.pull()
    town.answered(issue)
    assert pull.pull is not None
    town.github.commit(NAME, pull.pull.head, {"README.md": "# calc, by mona\n"}, "Say who", "mona")
    town.script(bash("echo '# end' >>calc.py"), finish("Mark the end"))
    town.says("mona", pull, "@agent mark the end of calc.py")
    town.answered(pull)
    assert "by mona" in town.content(pull, "README.md")
    assert "# end" in town.content(pull, "calc.py")
    assert len(town.commits(pull)) >= 3


def test_a_fresh_request_on_the_issue_continues_with_its_open_pull_request(town: Town) -> None:
    """Whole runs, because the second finds branch and pull request of the first on GitHub."""
    issue = town.opens("zoe", "add subtracts", "2 + 2 gives 0.")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent please fix this")
    pull = town.pull()
    town.answered(issue)
    assert pull.pull is not None
    branch = pull.pull.head
    pushed_commit = town.github.commit(
        NAME, branch, {"README.md": "# calc, by mona\n"}, "Say who", "mona"
    )
    town.script(
        bash("cat README.md; echo 'assert add(-1, -2) == -3' >>test_calc.py"),
        finish("Test negative numbers\n\nThey add up."),
    )
    town.says("mona", issue, "@agent also handle negative numbers")
    town.answered(issue, 2)
    assert "by mona" in str(town.endpoint.requests[-1].body)
    assert town.pulls() == [pull] and town.forge.branches(town.repository) == [branch]
    assert town.commits(pull) == ["Make add add", "Say who", "Test negative numbers"]
    assert town.repository.git.text("rev-parse", f"refs/heads/{branch}^") == pushed_commit
    assert f"Fixes #{issue.number}" in (pull.body or "")
    assert town.page(issue) == [
        ("mona", "@agent please fix this"),
        ("resolver-bot", f"Resolver opened [#{pull.number}]: Make add add"),
        ("mona", "@agent also handle negative numbers"),
        ("resolver-bot", f"Resolver added a commit to [#{pull.number}]."),
    ]
    [addition] = pull.comments
    assert f"as requested in #{issue.number}." in addition.body and "They add up." in addition.body


@pytest.mark.nightly
@pytest.mark.parametrize("town", [{"RESOLVER_BASE_MOVED": "rebase"}], indirect=True)
def test_the_base_moves_while_the_agent_works(town: Town) -> None:
    issue = town.opens("zoe", "add subtracts")

    def answer(body: dict[str, object]) -> Answer:
        if "Moved on" in str(town.repository.git.text("log", "--format=%s", "main")):
            return FIXED
        town.github.commit(NAME, "main", {"README.md": "# calc 2\n"}, "Moved on", "mona")
        return FIX

    town.endpoint.answer_with(answer)
    town.says("mona", issue, "@agent fix this")
    pull = town.pull()
    town.answered(issue)
    assert town.commits(pull) == ["Make add add"]
    assert town.content(pull, "README.md") == "# calc 2"
    assert "a + b" in town.content(pull, "calc.py")


@pytest.mark.parametrize("editable", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_pull_request_from_a_fork(town: Town, editable: bool) -> None:
    """A whole run, because what is refused at its end decides what its comment has to show."""
    town.github.create_repository("zoe/calc", parent=NAME)
    half = "def half(x):\n    return x // 2\n"
    town.github.commit("zoe/calc", "half", {"half.py": half}, "Add half()", "zoe")
    pull = town.github.create_pull(NAME, "zoe:half", "Add half()", "It halves.", author="zoe")
    assert pull.pull is not None
    pull.pull.maintainer_can_modify = editable
    town.script(
        bash("sed -i 's,// 2,/ 2,' half.py"),
        finish("Divide instead of rounding\n\nhalf(3) is 1.5 now."),
    )
    town.says("zoe", pull, "@agent do it for me")
    town.answered(pull)
    town.says("mona", pull, "@agent please make it divide")
    refusal, comment = town.answered(pull, 2)
    assert refusal.startswith("Sorry, zoe")
    if editable:
        assert "/ 2" in town.content(pull, "half.py")
        assert town.commits(pull) == ["Add half()", "Divide instead of rounding"]
    else:
        assert town.commits(pull) == ["Add half()"]
        assert "+    return x / 2" in comment and "git am" in comment
    assert not town.forge.branches(town.repository)
    assert town.pulls() == [pull]
