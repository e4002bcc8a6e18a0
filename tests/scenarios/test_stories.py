"""Stories of a maintainer's day, from the first word to what stands on the pages at the end."""

from tests.parts.runs import bash, finish
from tests.scenarios.town import Town

FIX = bash("sed -i 's/a - b/a + b/' calc.py && python3 test_calc.py")
FIXED = finish("Make add add\n\n`add` subtracted; it adds now.")


def test_an_issue_becomes_a_pull_request(town: Town) -> None:
    issue = town.opens("zoe", "add subtracts", "2 + 2 gives 0.")
    town.script(FIX, FIXED)
    town.says("mona", issue, "@agent please fix this")
    pull = town.pull()
    [told] = town.answered(issue)
    assert town.page(issue) == [
        ("mona", "@agent please fix this"),
        ("resolver-bot", f"I opened [#{pull.number}]: Make add add"),
    ]
    assert "This run: $0.0002, 2 steps" in told and "How it was made" in told
    assert f"Fixes #{issue.number}" in (pull.body or "")
    assert "a + b" in town.content(pull, "calc.py")
    assert town.commits(pull) == ["Make add add"]


def test_a_question_is_answered_and_nothing_is_pushed(town: Town) -> None:
    issue = town.opens("zoe", "Does half round down?")
    town.script(bash("grep -n 'a // 2' calc.py"), finish("It does: `//` in calc.py:6 rounds down."))
    town.says("mona", issue, "@agent why does half(3) give 1?")
    [told] = town.answered(issue)
    assert "rounds down" in told
    assert f"blob/{town.repository.git.tip('main')}/calc.py#L6" in told
    assert not town.pulls() and not town.forge.branches(town.repository)


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
    assert refusal.startswith("Sorry, eve, I can't start work on this")
    assert opened.startswith(f"I opened [#{pull.number}]")


def test_two_requests_at_once_on_one_issue_are_two_answers(town: Town) -> None:
    issue = town.opens("zoe", "add subtracts", "And half is odd.")
    town.script(FIX, FIXED, bash("cat calc.py"), finish("It rounds down, in calc.py:6."))
    town.says("mona", issue, "@agent fix add")
    town.says("mona", issue, "@agent why does half round down?")
    first, second = town.answered(issue, 2)
    assert first.startswith("I opened") and "rounds down" in second
    assert len(town.pulls()) == 1
