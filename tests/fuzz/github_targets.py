"""Targets: what GitHub sends, and what people and models write there."""

import json
from datetime import UTC, datetime, timedelta

import nh3

from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.markers import (
    ending_of,
    find_active_run,
    killed_run_marker,
    parse_pull_request_marker,
    run_message_in,
)
from resolver.github.comments.pull_request_template import fill_template
from resolver.github.comments.pull_request_text import (
    commit_message,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.titles import write_subject
from resolver.github.context.failed_checks import cut_log
from resolver.github.context.pictures import image_head
from resolver.github.events.commands import asks_for_nothing, find_instruction, read_instruction
from resolver.github.events.parse import (
    DispatchSource,
    asks_for_sweep,
    needs_own_login,
)
from resolver.github.events.payloads import parse_payload
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.quota_ledger import read_ledger, serialize_ledger
from resolver.github.text.comment_markdown import is_closed, safe_markdown, shorten_markdown
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks, references_in, without_pictures
from resolver.github.text.markdown import (
    MAX_TITLE,
    NOTIFYING,
    code_span,
    escape,
    fence,
    format_title,
    make_inert,
    single_line,
    visible,
    without_bot_commands,
    without_notifications,
)
from resolver.models.run import Trigger
from resolver.security.invisible_text import with_invisible_shown, without_invisible
from resolver.trace.plain import clean
from resolver.trace.untrusted_text import CodeHighlighter, MarkdownRenderer, utf16_length
from tests.fuzz.target import as_json, as_text, fuzzed
from tests.github.events.events import parsed
from tests.github.events.ledgers import NOW, a_run, ledger
from tests.github.reports import outcome, report
from tests.parts.events import published

ARRIVAL = DispatchSource("1", datetime(2026, 1, 1, tzinfo=UTC))
EVENTS = (
    "issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment",
    "workflow_dispatch", "repository_dispatch", "workflow_run", "check_suite", "check_run",
    "status", "schedule",
)  # fmt: skip


@fuzzed(
    '{"action": "created", "comment": {"body": "a\\ud800b\\u0000"}}',
    '{"a": [1, 2.5e3, true, null, "C:\\\\ud800"]}',
    tokens="\\ud800 \\udfff \\u0000 \\\\ { [ : , 1e999 -0 NaN Infinity",
)
def webhook_body(data: bytes) -> None:
    """Body of a signed delivery: an object that every database can store, or none."""
    payload = parse_payload(data)
    if payload is not None:
        text = json.dumps(payload, ensure_ascii=False)
        assert parse_payload(text.encode()) == payload or "NaN" in text


def _event_objects() -> tuple[object, ...]:
    """One published example of each event, with its name."""
    found = published()
    return tuple({"name": name, "payload": found[name][0]} for name in EVENTS if name in found)


@fuzzed(objects=_event_objects)
def github_event(data: bytes) -> None:
    """Payload of an event: a trigger that can be stored, or the reason why nothing starts."""
    event = as_json(data)
    if not isinstance(event, dict) or not isinstance(event.get("payload"), dict):
        return
    name = event.get("name")
    payload = parse_payload(json.dumps(event["payload"]).encode())
    if not isinstance(name, str) or payload is None:
        return
    found = parsed(name, payload, fix_failing_checks="all", arrival=ARRIVAL)
    if isinstance(found, Trigger):
        assert Trigger.model_validate_json(found.model_dump_json()) == found
    else:
        assert isinstance(found, IgnoredEvent) and found.reason
    assert asks_for_sweep(name, payload) in {True, False}
    assert needs_own_login(name, payload) in {True, False}


WRITTEN = (
    '# Title\n\nIt *fails* with `a.b(c)`, see [the docs](https://example.org/a?b=c "t") and #12.\n\n'
    "- [ ] one\n- [x] two @alice\n\n> quoted\n\n```python\nprint(1)\n```\n",
    "| a | b |\n|---|--:|\n| 1 | `x|y` |\n\n<details><summary>s</summary>\n\nhidden <b>b</b>\n</details>\n",
    "<!-- note --> [//]: # (hidden)\n[ref]: https://a.example 'x'\n![alt](https://evil.example/x.png)\n"
    "<img src=\"a\" alt='b' hidden> [^1]\n\n[^1]: note\n$`a`$ ```mermaid\ngraph\n```",
    "1. one\n   - two\n     ~~~\n     code\n     ~~~\n2. /approve\n\n@dependabot merge\ndeadbeef"
    * 2,
)
MARKDOWN_TOKENS = (
    "<!-- --> [//]: #( [a]: [^a]: ![ ]( <img <details> </details> <summary> <b hidden> <table> <pre> <a "
    'href=" <script> <style> <svg> ``` ~~~ ` `` ** __ ~~ | |-| > # - [x] - [ ] 1. @alice @a/b #1 a/b#2 '
    "GH-3 http:// https://a.b/ www.a. mailto: $` $$ \\ &lt; &#x40; \u200b \u202e \U000e0041 "
    "/approve bors @agent ::set-output"
)


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def hidden_text(data: bytes) -> None:
    """Text of an issue or comment: what GitHub hides is removed, and removing twice changes nothing."""
    found = strip_hidden(as_text(data))
    assert strip_hidden(found.text).text == found.text
    assert without_invisible(found.text) == found.text


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def written_markdown(data: bytes) -> None:
    """Markdown of a model: harmless in a browser, closed, within its limit."""
    text = as_text(data)
    for limit in (12_000, 60):
        safe = safe_markdown(text, own_issue=12, limit=limit, forge_host="github.com")
        assert utf16_length(safe) <= limit
        assert not safe or is_closed(safe)
    assert utf16_length(shorten_markdown(text, 50)) <= 50


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def escaped_text(data: bytes) -> None:
    """Text in comments: escaped, on one line, quoted or as a title, it notifies nobody."""
    text = as_text(data)
    assert all(match["url"] for match in NOTIFYING.finditer(format_title(text)))
    assert 1 <= len(format_title(text)) <= MAX_TITLE
    assert "\n" not in single_line(text) and "\n" not in code_span(text, in_table=True)
    assert visible(visible(text)) == visible(text)
    assert without_bot_commands(without_bot_commands(text)) == without_bot_commands(text)
    assert not any("\ud800" <= c <= "\udfff" for c in visible(text) + with_invisible_shown(text))
    for written in (
        escape(text),
        make_inert(text),
        without_notifications(text),
        fence(text, "python"),
    ):
        assert isinstance(written, str)


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def links_and_references(data: bytes) -> None:
    """Pictures and references in a cleaned text: found in order, with numbers that exist."""
    text = strip_hidden(as_text(data)).text
    assert all(reference.number > 0 for reference in references_in(text, "github.com"))
    links = PictureLinks()
    marked = links.take(text, as_text(data), "the issue", "/repos/octo/demo/issues/1", "alice")
    assert isinstance(marked, str) and isinstance(without_pictures(text), str)


@fuzzed(
    "@agent please fix this", "@agent /reviewer look at `a.py`", "Hi,\n\n> @agent fix\n\n@agent continue +$2",
    "@agent review --max-iterations=5 --model=x", "`@agent` <b>@agent stop</b>", "@agent +50 iterations",
    tokens="@agent @agent, /review stop pause continue +$1 +50 --model= --image= ` ``` > <pre> <!-- approve deny "
           "help update publish thanks",
)  # fmt: skip
def mention(data: bytes) -> None:
    """Mentions and commands of a comment: an instruction that can be stored, or none."""
    text = strip_hidden(as_text(data)).text
    found = find_instruction(text, "@agent")
    for comment in (text, found or ""):
        instruction = read_instruction(comment, pull_request=True)
        assert len(instruction.text) <= len(comment) + 20
        assert asks_for_nothing(comment) in {True, False}


@fuzzed(
    "## What\n<!-- describe -->\n\n## Why\n\n- [ ] tests\n- [ ] docs\n\nFixes #\n"
    "\0## What\nIt adds.\n\n## Why\n\nFixes #12\n\n- [x] tests\n",
    "**Description**\n\n| Q | A |\n|---|---|\n| Bug fix? | yes |\n\n### How tested\n"
    "\0**Description**\n\n| Q | A |\n|---|---|\n| Bug fix? | no |\n\n### How tested\n\npytest\n",
    tokens="## # ** - [ ] - [x] <!-- --> Fixes #1 | |-| ``` <details> @alice === ---",
)
def pull_request_template(data: bytes) -> None:
    """Pull request templates and an agent's text for one: filled in without a tick, or refused."""
    template, _, answer = as_text(data).partition("\0")
    filled = fill_template(template, answer, own_issue=12, limit=4_000)
    assert filled is None or filled.strip()
    fill_template(answer, answer, own_issue=None, limit=100)


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def final_comment(data: bytes) -> None:
    """A model's report in comment, pull request and commit: within GitHub's limits and closed."""
    text = as_text(data)
    said = outcome(
        text,
        cause=text,
        title=text[:300],
        change=text,
        verification=text,
        remaining=text,
    )
    told = report(outcome=said)
    comment = comment_body(told)
    assert utf16_length(comment) <= 65_536
    assert utf16_length(pull_request_body(told)) <= 65_536
    assert 1 <= len(pull_request_title(told)) <= MAX_TITLE
    assert "\0" not in commit_message(told)


@fuzzed(
    "<!-- resolver:run key=0a ending=finished issue=3 run=20261120-1 -->\nText\n<details>x</details>",
    "<!-- resolver:run key=0a1b ending=at-work run=20261120-101010-abcdef since=2026-11-20T10:10:10Z "
    "until=2026-02-31T10:10:10Z job=1 -->",
    tokens="<!-- --> resolver: run key= ending= since= until= issue= run= text=",
)
def markers(data: bytes) -> None:
    """Markers in comments and bodies: read, or not there."""
    text = as_text(data)
    find_active_run(text)
    killed_run_marker(text)
    ending_of(text, "k")
    parse_pull_request_marker(text)
    run_message_in(text)


@fuzzed(
    "2026-01-01T00:00:00.0Z ##[group]Run pytest\n##[error]Process completed with exit code 1.\n"
    "E   AssertionError: x\n\x1b[31mFAILED tests/a.py::b\x1b[0m\n##[endgroup]\n",
    tokens="##[error] ##[group] ##[endgroup] error: FAILED Traceback \x1b[31m \r ::error:: E",
)
def job_log(data: bytes) -> None:
    """Log of a failed job: an excerpt that fits and is clean."""
    for limit in (0, 300, 4_000):
        cut = cut_log(as_text(data), limit)
        assert len(cut) <= limit and not set(cut) & {"\x1b", "\r", "\u202e", "\x00"}


@fuzzed(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02", b"GIF89a\x01\0\x01\0\0\0\0",
    b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0",
    b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0", b"RIFF\x1a\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01*\x01\0\x01\0",
    tokens=("\x89PNG", "IHDR", "\x00\x00\x00\x00", "VP8L", "VP8 ", "GIF87a"),
)  # fmt: skip
def picture(data: bytes) -> None:
    """Head of a picture: a type with a size, or none."""
    head = image_head(data)
    assert head is None or (head.width > 0 and head.height > 0)


LEDGER_LINE = json.loads(serialize_ledger(ledger(a_run(1)), NOW))


@fuzzed(
    json.dumps(LEDGER_LINE),
    objects=(LEDGER_LINE,),
    tokens='{"kind": "run" "refusal" "day" "place" "at": null \n',
)
def quota_ledger(data: bytes) -> None:
    """The quota ledger, which everybody with push access can write: read, or counted as damaged."""
    found = read_ledger(data, NOW)
    again = read_ledger(serialize_ledger(found, NOW), NOW)
    assert again.damaged == 0
    assert read_ledger(serialize_ledger(again, NOW + timedelta(days=30)), NOW).readable


@fuzzed(
    "feat(parser): read dates (#41)\nfix: b\n\nRelease 1.0", "[ABC-12] Do it\n:bug: Fix\nFixed #12345 -- Made it.",
    tokens="feat fix ( ) : ! [A-1] :bug: #1 . - --",
)  # fmt: skip
def commit_subjects(data: bytes) -> None:
    """Subjects of a repository's commits: a style in which a subject fits its limit."""
    subjects = as_text(data).split("\n")
    subject = write_subject(subjects, "Fix the parser of dates", limit=72)
    assert subject and len(subject) <= 72


@fuzzed(*WRITTEN, tokens=MARKDOWN_TOKENS)
def shown_markdown(data: bytes) -> None:
    """A model's markdown as HTML: no scripts, forms, frames or remote pictures."""
    html = str(MarkdownRenderer(CodeHighlighter()).render(clean(as_text(data))))
    tags = nh3.clean(html, tags=nh3.ALLOWED_TAGS - {"img"})
    assert "<script" not in html and "<img" not in tags and "<iframe" not in html
