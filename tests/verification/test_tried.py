"""What is shown of the commands of a run that changed nothing."""

from resolver.models.run import CheckedCommand
from resolver.verification.attempted import MAX_COMMANDS, attempted_checks


def ran(*commands: str) -> list[str]:
    given = [CheckedCommand(command=c, exit_code=0, event_id=n) for n, c in enumerate(commands)]
    return [each.command for each in attempted_checks(given)]


def test_what_only_looks_tries_nothing() -> None:
    looks = [
        "ls -la",
        "cat a.py",
        "cd src && grep -rn add .",
        "git log --oneline",
        "sed -n 1,9p a.py",
    ]
    assert ran(*looks) == []
    assert ran("python3 repro.py", "cat a && make test") == [
        "python3 repro.py",
        "cat a && make test",
    ]


def test_the_last_run_of_each_is_kept_and_no_more_than_a_few() -> None:
    assert ran("pytest a", "pytest b", "pytest a") == ["pytest b", "pytest a"]
    many = [f"pytest {n}" for n in range(9)]
    assert ran(*many) == many[-MAX_COMMANDS:]


def test_commands_are_shown_as_they_read_from_the_repository() -> None:
    command = CheckedCommand(command="cd /tmp/r/workspace && pytest", exit_code=0, event_id=0)
    [shown] = attempted_checks([command], ("/tmp/r/workspace",))
    assert shown.command == "pytest"
