"""What a run shows to people and to GitHub's runner: words, whatever the sandbox printed."""

import re

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser

from tests.attacks.stage import Stage
from tests.parts.model_endpoint import reply
from tests.parts.runs import Ended, bash, finish, git

HOSTILE = r"""
</code></pre></details></summary></details></body></html><script>alert(1)</script>
<img src=x onerror=alert(2)><svg onload=alert(3)><iframe src="javascript:alert(4)"></iframe>
<style>*{display:none}</style><meta http-equiv=refresh content="0;url=https://evil.example/">
````````````````
```
~~~
<!-- --> ]]> {{ 7 * 7 }} ${{ secrets.X }}
![beacon](https://evil.example/x.png?d=1) <img src="https://evil.example/y.png">
[click](javascript:alert(5)) [link](https://evil.example/z) https://evil.example/plain
@octocat @github/security @everyone #1 GH-1 octo/demo#2
::error file=x::pwned
  ::add-mask::x
::stop-commands::token
##[error]pwned
::set-output name=state::finished
"""
ESCAPES = (
    "\x1b[2J\x1b]0;title\x07\x1b]8;;https://evil.example/\x07link\x1b]8;;\x07\x9b31m\x07\r\x08"
)
PRINT = f"cat <<'END'\n{HOSTILE}END\nprintf '%b' '\\033[2J\\033]0;t\\007\\r\\b'"


@pytest.fixture
def done(stage: Stage) -> Ended:
    made = stage.play(
        reply(HOSTILE + ESCAPES),
        bash(PRINT),
        bash(f"cat > 'a </details><script>alert(6)</script> @octocat.txt' <<'END'\n{HOSTILE}END"),
        bash("sed -i 's/a - b/a + b/' calc.py; exit 3"),
        finish(f"Make add add ::error::x @octocat{ESCAPES}\n{HOSTILE}{ESCAPES}"),
        issue=f"# add subtracts\n{HOSTILE}",
    )
    assert made.exit_code == 0, made.stderr
    return made


@pytest.mark.chromium
def test_no_output_of_a_run_is_more_than_words(
    done: Ended, stage: Stage, chromium: Browser
) -> None:
    """The agent prints scripts, HTML, mentions, terminal codes and workflow commands: in a
    browser, in Markdown and in a terminal it is text."""
    page = chromium.new_context().new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: said.append(message.text))
    page.goto((done.output / "trace.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(300)
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page.url]
    assert page.locator("iframe, object, embed, form, base, link").count() == 0
    assert page.locator("script").count() == 1 and page.locator("svg").count() == 0
    assert "onerror=alert(2)" in page.inner_text("body")
    page.context.close()

    body = done.outcome["pull_request"]["body"]
    for text in (
        body,
        (done.output / "trace.md").read_text(),
        done.outcome["pull_request"]["title"],
    ):
        check_markdown(text)
    shown = stage.line.call("trace", done.output)
    for printed in (done.stdout, done.stderr, shown.stdout):
        check_terminal(printed)
    assert "\x1b" not in git(stage.checkout, "log", "-1", "--format=%B", done.outcome["branch"])


def check_markdown(text: str) -> None:
    """Rendered as GitHub does: its HTML is ours alone, no remote image, no mention, all closed."""
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    tags = re.findall(r"<(/?)([a-zA-Z]+)([^>]*)>", html)
    names = {name.lower() for _, name, _ in tags}
    assert names & {"script", "img", "svg", "iframe", "style", "meta", "base", "form"} == set()
    assert not any(re.search(r"\son\w+=|javascript:", rest, re.I) for _, _, rest in tags)
    for name in ("details", "summary", "pre", "code", "table"):
        opened = sum(not end for end, n, _ in tags if n == name)
        assert opened == sum(bool(end) for end, n, _ in tags if n == name), name
    outside = re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", html, flags=re.S)
    assert not re.search(r"(?<![\w`/])@(octocat|github|everyone)", re.sub(r"<[^>]+>", "", outside))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b]", text)


def check_terminal(text: str) -> None:
    """Nothing that controls a terminal, nothing that GitHub's runner takes for a command."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert "##[" not in text
