"""The command line. To start fast, it imports the module of a command only to run that command."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from resolver.errors import ResolverError, RunStopped, UsageError
from resolver.trace.plain import for_terminal

COMMANDS = {
    "resolve": "Resolve an issue: OWNER/NAME#N, its URL, or PATH with --issue FILE.md.",
    "init": "Inspect a repository, then write its workflow and settings file.",
    "app": "Explain how to create a GitHub App for Resolver.",
    "action": "Run as a GitHub Action, on the event that started the job.",
    "close": "Complete the comment of this job's run if the run was killed.",
    "serve": "Serve the GitHub App's webhook and handle its deliveries.",
    "worker": "Execute the requests of a server's database, on any machine.",
    "sweep": "Resolve the labeled issues of a repository, oldest first.",
    "outcomes": "Show what became of the pull requests that Resolver opened.",
    "costs": "Show what runs have cost by month, and what is used of today's quotas.",
    "admin": "Show and change what a server has stored: queue, runs, quotas.",
    "publish": "Publish a run's finished change, without a model or a sandbox.",
    "replay": "Execute an event log again, or continue from one of its events.",
    "trace": "Show an event log as markdown, HTML, text or JSON.",
    "gc": "Remove what killed runs left on the Docker engine and this machine.",
    "eval": "Measure models on tasks with known answers, such as a repository's own fixes.",
    "demo": "Resolve a bundled issue in a bundled repository.",
    "doctor": "Check that this machine and these settings can run Resolver.",
}
"""Each command with its one line of help. The code of a command is `resolver.cli.NAME.command`."""


def print_version(context: click.Context) -> None:
    """Print the version with its commit and end the command."""
    version = importlib.import_module("resolver.config.version").version_text()
    click.echo(f"resolver {version}")
    context.exit()


class LazyCommands(click.Group):
    """A click group that imports a command only when it is run.

    Source: https://click.palletsprojects.com/en/stable/complex/#lazily-loading-subcommands
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - signature of click
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"resolver.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, given: print_version(context) if given else None,
    help="Show the version and the commit that it was built from.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Turn a GitHub issue into a small, correct pull request, with proof and a readable trace.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 finished without a change,
    4 a limit was reached or a question of the agent had no answer,
    5 refused by permission or policy.
    """
    print_setting_warnings(context.obj, as_annotation=context.invoked_subcommand == "action")


def main() -> None:
    """Entry point of the `resolver` script."""
    sys.exit(run(sys.argv[1:], dict(os.environ)))


def run(args: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run one command line and return its exit code. Errors become two lines on stderr.

    `environment` holds the environment variables, which commands get as `ctx.obj`.
    """
    try:
        _require_utf8(args)
        code = cli.main(list(args), prog_name="resolver", standalone_mode=False, obj=environment)
    except (ResolverError, RunStopped) as error:
        print_error(error)
        return error.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:  # a folder or a file that the person has named
        where = f"{error.filename}: " if error.filename else ""
        what = where + (error.strerror or repr(error))
        print_error(ResolverError(what, "check the path, and whether you may write there"))
        return 1
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        return 1
    return code if isinstance(code, int) else 0


def _require_utf8(args: Sequence[str]) -> None:
    """Raise UsageError for an argument that no file or message could repeat.

    Python has replaced its undecodable bytes by lone surrogates (PEP 383).
    """
    for arg in args:
        try:
            arg.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{arg!r} is not UTF-8",
                "rename the file or folder, or write the text in UTF-8",
            ) from error


def print_setting_warnings(environment: Mapping[str, str], as_annotation: bool) -> None:
    """Print a warning for each `RESOLVER_*` variable that is not a setting, which may be a typo.

    With `as_annotation` it is a workflow command, which GitHub shows on the page of the job.
    """
    if not any(name.startswith("RESOLVER_") for name in environment):
        return  # avoid importing the settings without need
    names = importlib.import_module("resolver.config.setting_messages")
    settings = importlib.import_module("resolver.config.settings").Settings
    server = importlib.import_module("resolver.config.server_variables").ServerVariables
    for warning in names.environment_warnings(environment, (settings, server)):
        line = for_terminal(warning)
        if as_annotation:
            click.echo(f"::warning title=Resolver::{line.replace('%', '%25')}")
        else:
            click.echo(f"resolver: warning: {line}", err=True)


def print_error(error: ResolverError | RunStopped) -> None:
    """Print what went wrong, and below it the next step."""
    click.echo(for_terminal(f"resolver: {error.what}"), err=True)
    if error.next_step:
        click.echo(for_terminal(f"  -> {error.next_step}"), err=True)
