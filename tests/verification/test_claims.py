"""Which of the agent's checks are told as evidence."""

from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.verification.claims import MAX_COMMANDS, checks_of_agent


def course(*checks: ObservedCheck) -> CheckHistory:
    numbered = (check.model_copy(update={"event_id": n}) for n, check in enumerate(checks))
    return CheckHistory(edited=True, checks=tuple(numbered))


def told(shown: CheckHistory) -> list[str]:
    return [each.command for each in checks_of_agent(shown)]


def check(command: str, **known: object) -> ObservedCheck:
    return ObservedCheck(command=command, verdict="passed", exit_code=0).model_copy(update=known)


def test_the_checks_since_the_last_edit_are_told_in_order() -> None:
    assert told(course(check("a", stale=True), check("b"), check("c"))) == ["b", "c"]


def test_without_any_those_from_before_are_told_as_that() -> None:
    [only] = checks_of_agent(course(check("a", stale=True)))
    assert (only.command, only.stale) == ("a", True)


def test_the_one_that_decides_is_among_the_few_that_are_told() -> None:
    many = [check(str(n)) for n in range(9)]
    shown = course(check("fails", verdict="failed", exit_code=1), *many)
    assert told(shown) == ["fails", *[str(n) for n in range(5, 9)]]
    assert len(told(shown)) == MAX_COMMANDS


def test_how_it_ended_is_told_as_it_was_judged() -> None:
    unknown = check("pytest | tail", verdict="unknown", exit_code=None, output="5 passed")
    [only] = checks_of_agent(course(unknown))
    assert (only.verdict, only.exit_code, only.output_tail) == ("unknown", None, "5 passed")
