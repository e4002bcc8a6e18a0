"""`resolver eval`: makes suites of tasks with known answers, runs models on them, and reports."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from resolver.cli.options import GroupedCommand, settings_options, settings_options_but
from resolver.config.settings import Settings, load_settings
from resolver.config.templates import render
from resolver.config.temporary_directory import (
    abandoned_directories,
    remove_locked_directory,
    temporary_directory,
)
from resolver.errors import UsageError
from resolver.evaluation.attempt import LoadSettings
from resolver.evaluation.evaluate import EvaluationRequest, evaluate, with_hidden_folders
from resolver.evaluation.recording import find_task, replay_trajectory
from resolver.evaluation.report import (
    RegressionLimits,
    find_regressions,
    render_regression,
    render_report_html,
    render_report_json,
    render_report_markdown,
    summarize,
)
from resolver.evaluation.results import EVALUATION_FILE, AttemptResult, read_evaluation
from resolver.evaluation.sources import open_fix_source
from resolver.evaluation.suite_maker import ExaminedFix, SuiteMaker
from resolver.evaluation.swe_bench import import_instance, parse_instances
from resolver.evaluation.task_format import find_suite, read_suite
from resolver.evaluation.trajectories import read_trajectory
from resolver.git.workspace import Workspace
from resolver.runs.common import filtered_log, open_host, stop_on_signals
from resolver.runs.wiring.sandbox import RunHost
from resolver.runtime.disk import remove_tree
from resolver.trace.plain import for_terminal

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Measure models on tasks with known answers."""


@command.command(
    cls=GroupedCommand, short_help="Make tasks of the fixes in a repository's history."
)
@click.argument("target")
@click.option(
    "--last",
    default=30,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Number of fixes that changed tests to examine, the newest first.",
)
@click.option(
    "--suite",
    type=FOLDER,
    default=Path("resolver-suite"),
    show_default=True,
    help="Folder of the tasks. Fixes that were examined before are not examined again.",
)
@settings_options
@click.pass_obj
def history(
    environment: Mapping[str, str], /, target: str, last: int, suite: Path, **options: Any
) -> int:
    """Make tasks of the fixes in the history of TARGET, without a model.

    TARGET is OWNER/NAME on GitHub (merged pull requests that closed an issue and changed tests;
    uses GITHUB_TOKEN) or the PATH of a git repository (commits that say `Fixes #N` and changed
    tests). A fix is usable if its tests fail on the commit before it and pass with it, three times
    in a row. The others are listed with the reason.

    The exit code is 0 if at least one task is usable, otherwise 3.
    """
    load = settings_loader(options, environment)
    settings, host = load("", {}), evaluation_host(environment)
    with temporary_directory() as folder, stop_on_signals(), filtered_log(settings, host):
        source = open_fix_source(target, last, settings, host, folder / "clone.git")
        maker = SuiteMaker(
            partial(load, ""),
            with_hidden_folders(host, suite),
            source.repository,
            suite,
            source.name,
        )
        found = maker.make(source.fixes, _print_examined)
    usable = [examined for examined in found if not examined.reason]
    summary = render("eval/history.txt.j2", found=found, usable=len(usable), suite=suite)
    click.echo(for_terminal(summary).rstrip())
    return 0 if usable else 3


@command.command(name="import", short_help="Import tasks in the format of SWE-bench.")
@click.argument("file", type=FILE)
@click.option(
    "--repository",
    type=FOLDER,
    required=True,
    help="Clone of the repository that the tasks are from, with its whole history.",
)
@click.option("--suite", type=FOLDER, required=True, help="Folder of the tasks.")
@click.option(
    "--command",
    "test_command",
    default="python -m pytest",
    show_default=True,
    help="Command of the tests, to which the test files are appended.",
)
def import_command(file: Path, repository: Path, suite: Path, test_command: str) -> int:
    """Import the tasks of FILE, which has one SWE-bench task in each line (JSONL).

    The tests are taken as the data set lists them; nothing is executed.
    """
    try:
        instances = list(parse_instances(file.read_text("utf-8"), str(file)))
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text", "give a JSONL file") from None
    with temporary_directory() as folder:
        clone = Workspace.clone(str(repository.resolve()), folder / "clone.git")
        for instance in instances:
            target = suite / instance.instance_id
            if target.exists():
                raise UsageError(f"{target} exists already", "remove it, or choose another --suite")
            import_instance(instance, clone, target, test_command)
            click.echo(str(target))
    return 0


@command.command(
    name="run", cls=GroupedCommand, short_help="Run models on tasks and score their results."
)
@click.argument("suite", type=FOLDER)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Model to measure; may be repeated. `oracle` applies the real fix, `nop` does nothing. "
    "Default: the model of the settings.",
)
@click.option(
    "--output",
    type=FOLDER,
    default=Path("resolver-eval"),
    show_default=True,
    help="Folder of the results. What it has is kept, so that a killed evaluation is continued.",
)
@click.option(
    "--parallel", default=1, show_default=True, type=click.IntRange(1, 64), help="Runs at a time."
)
@click.option(
    "--total-budget",
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars for all runs together. Default: no limit but that of each run.",
)
@settings_options_but("model")
@click.pass_obj
def run_command(
    environment: Mapping[str, str],
    /,
    suite: Path,
    models: tuple[str, ...],
    output: Path,
    parallel: int,
    total_budget: float | None,
    **options: Any,
) -> int:
    """Run models on the tasks of SUITE, and score the results with the hidden tests.

    SUITE is a folder of tasks, or one task, in Harbor's format; `bundled` is the suite that comes
    with Resolver. Each run has a sandbox of its own without network, in a clone that ends with the
    commit before the fix. The same command continues an evaluation that was stopped or ran out of
    budget.

    The exit code is 0 if every task has a result, and 4 if some are missing.
    """
    load = settings_loader(options, environment)
    settings, host, folder = load("", {}), evaluation_host(environment), find_suite(suite)
    chosen = tuple(dict.fromkeys(models)) or ((settings.model,) if settings.model else ())
    if not chosen:
        raise UsageError("no model is given", "add --model NAME, or --model oracle to try it out")
    tasks = read_suite(folder)
    usable = tuple(task for task in tasks if not task.problem)
    for task in tasks:
        if task.problem:
            click.echo(for_terminal(render("eval/skipped.txt.j2", task=task)).rstrip(), err=True)
    if not usable:
        raise UsageError(f"no task in {suite} can be executed", "see the lines above")

    request = EvaluationRequest(
        suite=str(suite),
        tasks=usable,
        models=chosen,
        folder=output,
        host=with_hidden_folders(host, folder, output),
        load_settings=load,
        budget=float("inf") if total_budget is None else total_budget,
        parallel=parallel,
        report=_print_result,
    )
    is_continued = (output / EVALUATION_FILE).exists()
    with stop_on_signals(), filtered_log(settings, host):
        results = evaluate(request)
    if is_continued:
        _remove_abandoned_directories()
    click.echo(for_terminal(render_report_markdown(summarize(read_evaluation(output)))).rstrip())
    return 0 if len(results) == len(usable) * len(chosen) else 4


@command.command(short_help="Show results: rates, costs, failures, comparisons.")
@click.argument("folder", type=FOLDER)
@click.option("--compare", type=FOLDER, help="Results to compare with, task by task.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "html"]),
    default="markdown",
    show_default=True,
    help="Output format. `html` is one page that needs nothing else.",
)
def report(folder: Path, compare: Path | None, form: str) -> int:
    """Show the results in FOLDER, which `resolver eval run` wrote.

    Rates have 95 percent confidence intervals (Wilson). Two models, or with --compare two folders,
    are compared task by task (McNemar's exact test).
    """
    other = read_evaluation(compare) if compare is not None else None
    summary = summarize(read_evaluation(folder), other)
    renderers = {
        "markdown": render_report_markdown,
        "json": render_report_json,
        "html": render_report_html,
    }
    text = renderers[form](summary)
    click.echo((for_terminal(text) if form == "markdown" else text).rstrip())
    return 0


@command.command(short_help="Compare results with those of an earlier evaluation.")
@click.argument("folder", type=FOLDER)
@click.argument("baseline", type=FOLDER)
@click.option(
    "--max-p",
    default=RegressionLimits.p_value,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Maximum p-value of the paired test at which fewer resolved tasks are a regression.",
)
@click.option(
    "--max-drop",
    default=RegressionLimits.drop,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of the tasks; a larger loss is a regression whatever the p-value.",
)
@click.option(
    "--issue", type=click.Path(path_type=Path), help="File to write if there is a regression."
)
@click.option("--page", default="", help="URL of the run that the issue links to.")
def compare(
    folder: Path, baseline: Path, max_p: float, max_drop: float, issue: Path | None, page: str
) -> int:
    """Compare the results in FOLDER with the earlier ones in BASELINE, task by task.

    Only tasks with a result in both count. With --issue, the text of an issue is written if
    there is a regression. The exit code is 0 in either case.
    """
    summary = summarize(read_evaluation(folder), read_evaluation(baseline))
    regressions = find_regressions(summary, RegressionLimits(max_p, max_drop))
    if regressions and issue is not None:
        issue.write_text(render_regression(summary, regressions, page), "utf-8")
    text = render("eval/compared.txt.j2", summary, regressions=regressions)
    click.echo(for_terminal(text).rstrip())
    return 0


@command.command(
    cls=GroupedCommand, short_help="Execute recorded trajectories again, without a model."
)
@click.argument("files", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option(
    "--suite",
    type=FOLDER,
    required=True,
    help="A task, or a suite with the tasks.",
)
@settings_options_but("model")
@click.pass_obj
def replay(
    environment: Mapping[str, str], /, files: tuple[Path, ...], suite: Path, **options: Any
) -> int:
    """Execute the recorded trajectories FILES in Resolver's sandbox, without a model.

    FILES are trajectories in ATIF or of mini-swe-agent (.traj.json), or logs of Resolver. Each is
    executed on the repository of its task, which is found by the recording's id or file name.
    The change is compared with the recorded one, and scored with the hidden tests if the task has
    them.

    The exit code is 0 if every change is the same as the recorded one or can't be compared, else 1.
    """
    load = settings_loader(options, environment)
    settings, suite = load("", {}), find_suite(suite)
    host = with_hidden_folders(evaluation_host(environment), suite)
    # The comparison needs no hidden tests; only the score does.
    tasks = {task.id: task for task in read_suite(suite) if task.problem != "no_repository"}

    same = True
    with stop_on_signals(), filtered_log(settings, host):
        for path in files:
            trajectory = read_trajectory(path)
            task = find_task(tasks, trajectory, path)
            if task is None:
                raise UsageError(
                    f"{suite} has no task for {path}", "give the folder of its task with --suite"
                )
            with temporary_directory() as folder:
                replayed = replay_trajectory(task, trajectory, load, host, folder)
            text = render("eval/replayed.txt.j2", path=path, replayed=replayed)
            click.echo(for_terminal(text).rstrip())
            same = same and replayed.comparison != "different"
    return 0 if same else 1


def settings_loader(options: Mapping[str, Any], environment: Mapping[str, str]) -> LoadSettings:
    """Return what loads the settings of an evaluation for a model, "" for that of the settings.

    They are without network.
    """

    def load(model: str, repository: Mapping[str, object]) -> Settings:
        chosen = {**options, "model": model or options.get("model")}
        settings = load_settings(chosen, environment, repository)
        return settings.model_copy(update={"egress": ()})

    return load


def evaluation_host(environment: Mapping[str, str]) -> RunHost:
    """Return this machine without anything that one run leaves for another."""
    return replace(open_host(environment), clones=None)


def _remove_abandoned_directories() -> None:
    """Remove the temporary folders of runs that were killed, as `resolver gc` does."""
    for folder in abandoned_directories(Path(tempfile.gettempdir()), os.geteuid()):
        with suppress(OSError):
            remove_locked_directory(folder, remove_tree)


def _print_result(result: AttemptResult) -> None:
    click.echo(for_terminal(render("eval/result.txt.j2", result=result)).rstrip(), err=True)


def _print_examined(examined: ExaminedFix) -> None:
    text = render("eval/examined.txt.j2", examined=examined)
    click.echo(for_terminal(text).rstrip(), err=True)
