"""Extends a check's command so that its runner writes results by test.

Only options that the runners document are added, and the project's own options stay. A command
whose runner can't be asked safely is left as it is: then its exit code counts alone.
"""

import re
from collections.abc import Callable
from posixpath import basename
from shlex import quote
from typing import NamedTuple

from resolver.models.verification import ProjectCheck, ReportFormat
from resolver.verification.runner_commands import MANAGERS, last_runner, simple_commands

_JUNIT_OPTION = re.compile(r"--junit-?xml[= ]([\w./-]{1,300})(?!\S)")
_ENDINGS: tuple[tuple[str, ReportFormat], ...] = (
    (".xml", "junit"),
    (".trx", "trx"),
    (".tap", "tap"),
)
_TEXT_FORMATS: dict[str, ReportFormat] = {"go": "go-json", "jest": "jest-json"}
"""Formats of reports in JSON by runner."""


class _RunnerOptions(NamedTuple):
    """The options with which a runner writes a report of a format, separated by spaces.

    report: name of the report in the folder of reports; "" if it is the output.
    """

    report_format: ReportFormat
    options: str
    report: str = ""


_OPTIONS = {
    "unittest": _RunnerOptions("unittest", "-v"),
    "django": _RunnerOptions("unittest", "--verbosity=2 --noinput"),
    "jest": _RunnerOptions(
        "jest-json",
        "--json --outputFile={report} --testLocationInResults --bail=0",
        "report.json",
    ),
    "vitest": _RunnerOptions(
        "junit",
        "--reporter=default --reporter=junit --outputFile.junit={report} --bail=0",
        "report.xml",
    ),
    "mocha": _RunnerOptions(
        "junit", "--reporter=xunit --reporter-option=output={report} --no-bail", "report.xml"
    ),
    "bun": _RunnerOptions("junit", "--reporter=junit --reporter-outfile={report}", "report.xml"),
    "tap": _RunnerOptions("tap", "--reporter=tap"),
    "ava": _RunnerOptions("tap", "--tap"),
    "dotnet": _RunnerOptions("trx", "--logger trx --results-directory {folder}", "*.trx"),
    "phpunit": _RunnerOptions("junit", "--log-junit {report}", "report.xml"),
    "bats": _RunnerOptions("junit", "--report-formatter junit --output {folder}", "report.xml"),
    "ctest": _RunnerOptions("junit", "--output-junit {report}", "report.xml"),
}
"""By runner, for those that need only further options at the end of the command."""

_BUILDS = {
    "maven": ("--fail-at-end", "target/*-reports/TEST-*.xml"),
    "gradle": ("--continue", "build/test-results/**/*.xml"),
}
"""The option with which a build executes all tests, and the reports that it writes in any case,
below each of its modules."""


def instrument(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Return the check with a command and variables by which its runner writes a report.

    A check that declares its report is returned with the report's format.

    folder: absolute path of an existing empty folder outside the work tree, of this execution
        alone. It has no white space and no characters that are special in a glob.
    """
    runner = check.runner or runner_of(check.command)
    if check.report:
        return check.model_copy(update={"report_format": _declared_format(check, runner)})
    extend = _with_options if runner in _OPTIONS else _EXTENSIONS.get(runner)
    if check.report_format or extend is None:
        return check
    return extend(check.model_copy(update={"runner": runner}), folder)


def runner_of(command: str) -> str:
    """Return the runner that a command starts, "" if it starts none or several different ones."""
    runners = {simple.runner for simple in simple_commands(command) if simple.runner}
    return runners.pop() if len(runners) == 1 else ""


def _declared_format(check: ProjectCheck, runner: str) -> ReportFormat:
    if check.report_format:
        return check.report_format
    for ending, name in _ENDINGS:
        if check.report.endswith(ending):
            return name
    return _TEXT_FORMATS.get(runner, "") if check.report.endswith(".json") else ""


def _report(check: ProjectCheck, report: str, name: ReportFormat, **more: object) -> ProjectCheck:
    return check.model_copy(update={"report": report, "report_format": name, **more})


def append_arguments(check: ProjectCheck, *arguments: str) -> str | None:
    """Return the command with further arguments for its runner.

    None if arguments at the end of the command would not reach the runner.
    """
    commands = simple_commands(check.command)
    if not commands:
        return None
    last = commands[-1]
    reaches = last_runner(check.command) == check.runner
    # The runner of a package script is only named in a check if the script passes arguments on.
    is_script = bool(last.script) and last_runner(check.command) == "" and _ends_plainly(check)
    if not reaches and not is_script:
        return None
    words = " ".join(map(quote, arguments))
    if is_script and basename(last.words[0]) in MANAGERS:
        # Only npm takes the arguments before `--` for itself.
        separate = basename(last.words[0]) == "npm" and "--" not in last.words
        return f"{check.command}{' --' if separate else ''} {words}"
    return f"{check.command} {words}"


def _ends_plainly(check: ProjectCheck) -> bool:
    tail = check.command.rpartition("&&")[2]
    return not any(char in tail for char in "|;&<>(){}#`$\n")


def _with_options(check: ProjectCheck, folder: str) -> ProjectCheck:
    report_format, options, name = _OPTIONS[check.runner]
    report = f"{folder}/{name}" if name else ""
    command = append_arguments(check, *options.format(folder=folder, report=report).split())
    return check if command is None else _report(check, report, report_format, command=command)


def _pytest(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Instrument pytest by PYTEST_ADDOPTS, which wrappers such as make pass on.

    pytest reads the project's `addopts` first, then this variable, then the command line:
    https://docs.pytest.org/en/stable/reference/customize.html. The family xunit1 is the only one
    with the file and line of a test.
    """
    if own := _JUNIT_OPTION.search(check.command):
        return _report(check, f"{_start_folder(check.command)}{own[1]}", "junit")
    options = f"--junitxml={folder}/report.xml -o junit_family=xunit1 --maxfail=0"
    return _with_addopts(check, options, f"{folder}/report.xml")


def _with_addopts(check: ProjectCheck, options: str, report: str, **more: str) -> ProjectCheck:
    earlier = check.environment.get("PYTEST_ADDOPTS", "")
    environment = {**check.environment, "PYTEST_ADDOPTS": f"{earlier} {options}".strip(), **more}
    return _report(check, report, "junit", environment=environment)


def _tox(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Instrument pytest within tox. tox passes on only the variables that are declared.

    tox 4.11 and later read TOX_OVERRIDE, tox 3 reads TOX_TESTENV_PASSENV. pytest replaces variables
    in the report's path, so that each environment of tox has a report of its own.
    """
    options = f"--junitxml={folder}/report-${{TOX_ENV_NAME}}.xml -o junit_family=xunit1 --maxfail=0"
    return _with_addopts(
        check,
        options,
        f"{folder}/report-*.xml",
        TOX_OVERRIDE="testenv.pass_env+=PYTEST_ADDOPTS",
        TOX_TESTENV_PASSENV="PYTEST_ADDOPTS",
    )


def _node(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Instrument `node --test` by NODE_OPTIONS, which package scripts pass on.

    The processes of the single test files ignore the options:
    https://nodejs.org/api/cli.html#node_optionsoptions
    """
    report = f"{folder}/report.tap"
    options = (
        f"--test-reporter=tap --test-reporter-destination={report} "
        "--test-reporter=spec --test-reporter-destination=stdout"
    )
    earlier = check.environment.get("NODE_OPTIONS", "")
    environment = {**check.environment, "NODE_OPTIONS": f"{earlier} {options}".strip()}
    return _report(check, report, "tap", environment=environment)


def _go(check: ProjectCheck, folder: str) -> ProjectCheck:
    """Instrument `go test`. The results go to a file: they are longer than an output may be."""
    if last_runner(check.command) != "go" or check.command.count("go test") != 1:
        return check
    report = f"{folder}/report.json"
    plain = re.sub(r"(?<=go test)(?= .*?-json\b| |$)", " -json", check.command, count=1)
    command = check.command if re.search(r" -json\b", check.command) else plain
    return _report(check, report, "go-json", command=f"{command} > {quote(report)}")


def _cargo(check: ProjectCheck, folder: str) -> ProjectCheck:  # noqa: ARG001
    """Instrument `cargo test`, which otherwise ends after the first test program that fails."""
    calls = re.findall(r"\bcargo (?:\+\S+ )?(?:test|t)\b", check.command)
    if len(calls) != 1:
        return check
    command = check.command
    if "--no-fail-fast" not in command:
        command = command.replace(calls[0], f"{calls[0]} --no-fail-fast")
    environment = {"CARGO_TERM_COLOR": "never", **check.environment}
    return _report(check, "", "cargo", command=command, environment=environment)


def _nextest(check: ProjectCheck, folder: str) -> ProjectCheck:  # noqa: ARG001
    """Return the check with the report that the project's configuration of nextest asks for."""
    command = check.command
    if "--no-fail-fast" not in command:
        command = command.replace("nextest run", "nextest run --no-fail-fast", 1)
    report = f"{_start_folder(check.command)}target/nextest/*/**/*.xml"
    return _report(check, report, "junit", command=command)


def _built(check: ProjectCheck, folder: str) -> ProjectCheck:  # noqa: ARG001
    option, reports = _BUILDS[check.runner]
    command = append_arguments(check, option) or check.command
    report = f"{_start_folder(check.command)}**/{reports}"
    return _report(check, report, "junit", command=command)


def _start_folder(command: str) -> str:
    """Return the folder that a command enters first, with a slash at its end; "" for none."""
    commands = simple_commands(command)
    first = commands[0].words if commands else ()
    return f"{first[1].rstrip('/')}/" if first[:1] == ("cd",) and len(first) == 2 else ""


_EXTENSIONS: dict[str, Callable[[ProjectCheck, str], ProjectCheck]] = {
    "pytest": _pytest,
    "tox": _tox,
    "nox": _pytest,
    "node": _node,
    "go": _go,
    "cargo": _cargo,
    "nextest": _nextest,
    "maven": _built,
    "gradle": _built,
}
