"""Stories of a maintainer's day: the requests, and the comments on the pages at their end."""

import pytest

from tests.parts.model_endpoint import Answer, tool_call
from tests.parts.runs import bash, finish
from tests.scenarios.town import Town

FIX = bash("sed -i 's/a - b/a + b/' calc.py && python3 test_calc.py")
FIXED = finish("Make add add\n\n`add` subtracted; it adds now.")

OWN_CHECKS = {"RESOLVER_FIX_FAILING_CHECKS": "own"}


def done(message: str, **answers: str) -> Answer:
    """The model is done, and says what it did in each conversation."""
    threads = [{"id": id, "addressed": True, "answer": words} for id, words in answers.items()]
    return tool_call("finish", {"title": message, "message": message, "threads": threads})


@pytest.mark.parametrize("town", [OWN_CHECKS], indirect=True)
def test_from_an_issue_over_two_rounds_of_review_to_a_failing_check(
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

    assert town.pull() is pull, "there is one pull request"
    assert pull.pull is not None
    branch = f"refs/heads/{pull.pull.head}"
    listed = town.repository.git.text("log", "--format=%s", f"main..{branch}").splitlines()
    assert listed == ["Test more", "Say more", "Document add()", "Make add add"]
    assert "The sum of both" in str(town.repository.git.text("show", f"{branch}:calc.py"))
    assert [c.author.login for c in issue.comments] == ["mona", "resolver-bot"]
    assert len(pull.comments) == 3
    assert town.endpoint.left == 0
