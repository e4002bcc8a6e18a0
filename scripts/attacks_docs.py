"""Prints docs/reference/attacks.md from the docstrings of the tests that attack Resolver. A test
compares the file with it.

These are the tests in `tests/attacks` and those marked `attack`. Each says in its docstring what is
tried and what holds.
"""

import ast
from functools import cache
from pathlib import Path

from scripts.settings_docs import origin_note

ROOT = Path(__file__).parents[1]

HEAD = """# Attacks that the tests try

Each line is a test: what is tried, and what holds. In the tests of whole runs, a scripted model
does exactly what the attacker wants, so that no result depends on the good sense of a model. To run
all of them:

<!-- not run: runs for minutes; CI executes these tests -->

    .venv/bin/pytest -m "attack and not deep"

[THREATS.md](../../THREATS.md) has the threats that these tests belong to, and what is not defended.
"""

FOLDER = "tests/attacks/"
MARKER = "pytest.mark.attack"

CHAPTERS: dict[str, tuple[str, ...]] = {
    "Secrets": (
        "tests/attacks/test_secrets.py",
        "tests/attacks/test_app.py",
        "tests/attacks/test_on_github.py",
        "tests/security/test_redaction.py",
        "tests/llm/test_secrecy.py",
        "tests/codebase/test_settings.py",
        "tests/github/test_github_app.py",
        "tests/github/test_github_moved.py",
        "tests/webhook/test_metrics.py",
        "tests/webhook/test_app_setup.py",
    ),
    "Who may start work": (
        "tests/github/events/test_permission.py",
        "tests/github/events/test_parse.py",
        "tests/github/events/test_mention.py",
        "tests/github/events/test_checks.py",
        "tests/cli/test_help.py",
        "tests/runs/test_github.py",
        "tests/runs/test_withdrawal.py",
        "tests/conversation/test_watch.py",
    ),
    "Hidden text and late changes": (
        "tests/attacks/test_hostile_issue.py",
        "tests/attacks/test_pull_requests.py",
        "tests/github/test_hidden_text.py",
        "tests/github/test_github_pinning.py",
        "tests/github/test_github_pictures.py",
        "tests/memory/skills/test_reading.py",
        "tests/agents/test_definitions.py",
    ),
    "What Resolver writes": (
        "tests/attacks/test_rendered.py",
        "tests/attacks/test_every_field.py",
        "tests/github/test_comment_markdown.py",
        "tests/github/test_bot_commands.py",
        "tests/github/test_comment_templates.py",
        "tests/github/test_comment_text.py",
        "tests/github/test_template.py",
        "tests/github/test_text_growth.py",
        "tests/github/test_github_comments.py",
        "tests/github/test_github_publishing.py",
        "tests/github/test_same_account.py",
        "tests/github/test_github_opening.py",
        "tests/github/test_github_pulls.py",
        "tests/github/test_github_rounds.py",
        "tests/trace/test_html.py",
        "tests/action/test_main_job.py",
    ),
    "Git and files": (
        "tests/attacks/test_planted_git.py",
        "tests/attacks/test_refused_changes.py",
        "tests/git/test_bundle.py",
        "tests/git/test_attacks.py",
        "tests/git/test_clone_cache.py",
        "tests/git/test_policy.py",
        "tests/git/test_deceptive_text.py",
        "tests/publishing/test_moved_pull_request.py",
        "tests/runs/test_stored_change.py",
    ),
    "Sandbox": (
        "tests/attacks/test_container_limits.py",
        "tests/attacks/test_exhaustion.py",
        "tests/attacks/test_local_files.py",
        "tests/attacks/test_kept_images.py",
        "tests/attacks/test_killed.py",
        "tests/runtime/test_isolation.py",
        "tests/runtime/test_enter.py",
        "tests/sandbox/test_socket_filter.py",
        "tests/sandbox/test_changed_paths.py",
        "tests/runs/test_endings.py",
    ),
    "Network": (
        "tests/attacks/test_egress.py",
        "tests/runtime/test_egress.py",
        "tests/runs/test_browsing.py",
        "tests/runtime/test_tunnels.py",
    ),
    "Model and MCP servers": (
        "tests/attacks/test_garbage.py",
        "tests/attacks/test_mcp.py",
        "tests/llm/test_transport.py",
        "tests/llm/test_providers.py",
    ),
    "Webhook server, queue and quotas": (
        "tests/webhook/test_webhook.py",
        "tests/webhook/test_connections.py",
        "tests/webhook/test_run_pages.py",
        "tests/webhook/test_login.py",
        "tests/webhook/test_run_index.py",
        "tests/webhook/test_worker.py",
        "tests/webhook/test_tenants.py",
        "tests/webhook/test_crashes.py",
        "tests/webhook/test_storing_killed.py",
        "tests/webhook/running/test_commands.py",
        "tests/runs/test_quotas.py",
        "tests/storage/test_ledger_ref.py",
        "tests/cli/test_outcomes.py",
    ),
    "Evaluations": ("tests/evaluation/test_eval_command.py",),
}
"""Modules with tests of attacks, by chapter."""


@cache
def attack_tests(path: str) -> dict[str, str]:
    """Return what each test of an attack in a module tries, by its name."""
    found = {}
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            is_marked = any(ast.unparse(decorator) == MARKER for decorator in node.decorator_list)
            if is_marked or path.startswith(FOLDER):
                found[node.name] = " ".join((ast.get_docstring(node) or "").split())
    return found


def attacks_page() -> str:
    """Return the content of docs/reference/attacks.md."""
    parts = [HEAD]
    for chapter, modules in CHAPTERS.items():
        rows = [
            f"| {_cell(text)} | [{test}](../../{module}) |"
            for module in modules
            for test, text in attack_tests(module).items()
        ]
        heading = [f"## {chapter}", "", "| What is tried, and what holds | Test |", "|---|---|"]
        parts.append("\n".join([*heading, *rows, ""]))
    return "\n".join(parts) + origin_note("the docstrings of the tests")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(attacks_page(), end="")
