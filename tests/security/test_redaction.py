"""Tests of redacting known secrets in any form."""

import base64
import json
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ToolCall
from resolver.events.log import dump_line, parse_line, parse_logged_event
from resolver.models.run import Completion, RequestedToolCall, RunState
from resolver.security.redaction import MARK, MAX_DEPTH, Redactor
from resolver.trace.plain import clean

SHORT_TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"
LONG_TOKEN = "ghs_" + "".join(
    base64.urlsafe_b64encode(bytes([i, 255 - i, (7 * i) % 256])).decode() + "._"[i % 2]
    for i in range(103)
)
MODEL_KEY = "sk-test-0123456789abcdefghij"
WEBHOOK_SECRET = 'correct "horse" \\ battery/staple+ü'
SECRETS = [SHORT_TOKEN, LONG_TOKEN, MODEL_KEY, WEBHOOK_SECRET]

redactor = Redactor(SECRETS)


def unchanging_base64(data: bytes, offset: int) -> str:
    """The characters of the secret's base64 that don't depend on what stands around it."""
    after = 3 + -(offset + len(data)) % 3  # no padding, which would be the same in both
    first, second = (
        base64.b64encode(byte * offset + data + byte * after).decode() for byte in (b"\0", b"\xff")
    )
    same = [i for i, pair in enumerate(zip(first, second, strict=True)) if pair[0] == pair[1]]
    return first[same[0] : same[-1] + 1]


def forms(secret: str) -> list[str]:
    """Every form that must not be seen."""
    data = secret.encode()
    inner = [unchanging_base64(data, offset) for offset in range(3)]
    return [
        secret,
        *inner,
        *(text.translate(str.maketrans("+/", "-_")) for text in inner),
        data.hex(),
        data.hex().upper(),
        quote(secret),
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    ]


secrets = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zs", "Zl", "Zp", "Cn", "Co"]),
    min_size=6,
    max_size=80,
).filter(lambda s: s == clean(s).strip() and MARK not in s and s not in MARK)
contexts = st.text(max_size=40)


@pytest.mark.attack
@given(secret=secrets, before=contexts, after=contexts, which=st.integers(0, 12))
@example("aaaaaa", "aaaa", "aaaa", 0)
@example("ab" * 20, "b", "a", 0)
@example("0" * 40, "0" * 7, "", 8)
def test_no_form_of_a_secret_survives_in_any_context(
    secret: str, before: str, after: str, which: int
) -> None:
    """A secret is written raw, in base64 at three offsets, in hex, as URL or JSON, in any
    context: no form survives."""
    form = forms(secret)[which]
    # What stays may join into the form again only if the form has pieces of the mark in it.
    assume(not any(form.startswith(MARK[i:]) or form.endswith(MARK[:i]) for i in range(1, 10)))
    result = Redactor([secret]).redact_text(before + form + after)
    assert form not in result
    assert MARK in result


@pytest.mark.attack
@given(
    start=st.integers(0, len(LONG_TOKEN) - 16),
    length=st.integers(16, 60),
    before=contexts,
    after=contexts,
)
def test_a_piece_of_sixteen_characters_is_found(
    start: int, length: int, before: str, after: str
) -> None:
    """Only a piece of a secret is written: pieces of 16 characters are redacted."""
    piece = LONG_TOKEN[start : start + length]
    assert piece[:16] not in redactor.redact_text(before + piece + after)
    assert piece not in redactor(a.CmdRun(command=before + piece + after)).command


@pytest.mark.parametrize("secret", SECRETS)
def test_base64_wrapped_into_lines_is_found(secret: str) -> None:
    wrapped = base64.encodebytes(secret.encode()).decode()
    left = redactor.redact_text(wrapped).replace(MARK, "").split()  # a last, short line
    assert sum(map(len, left)) < 16


@pytest.mark.parametrize("offset", range(3))
@pytest.mark.parametrize("secret", ["aB3dE5", MODEL_KEY])
def test_of_base64_every_character_that_the_secret_decides_is_masked(
    secret: str, offset: int
) -> None:
    text = base64.b64encode(b"-" * offset + secret.encode() + b"---").decode()
    decided = unchanging_base64(secret.encode(), offset)
    assert decided in text
    assert Redactor([secret]).redact_text(text) == text.replace(decided, MARK)


@pytest.mark.parametrize("shift", range(8))
@pytest.mark.parametrize("length", [35, 36])
def test_the_first_and_the_last_sixteen_characters_are_found_wherever_they_stand(
    length: int, shift: int
) -> None:
    secret = LONG_TOKEN[40 : 40 + length]
    for piece in (secret[:16], secret[-16:]):
        assert Redactor([secret])(a.CmdRun(command="~" * shift + piece)).command.endswith(MARK)


def test_a_piece_of_fewer_than_sixteen_characters_is_no_secret() -> None:
    redact = Redactor([MODEL_KEY])
    assert redact(a.CmdRun(command=MODEL_KEY[8:23])).command == MODEL_KEY[8:23]
    assert redact(a.CmdRun(command=MODEL_KEY[8:24])).command == MARK


@pytest.mark.parametrize("before", ["C:\\", "\\\\", "a\\\n\\"])
def test_backslashes_before_a_secret_stay(before: str) -> None:
    for secret in SECRETS:
        assert redactor.redact_text(f"{before}{secret} end") == f"{before}{MARK} end"
        assert json.loads(redactor.redact_text(json.dumps(before + secret))) == before + MARK


@pytest.mark.parametrize("times", [1, 2, 3])
def test_json_in_which_a_piece_begins_with_an_escaped_character_stays_json(times: int) -> None:
    secret = 'pw"canary-0123456789abcdef\\'
    text = secret
    for _ in range(times):
        text = json.dumps({"x": text})
    left = Redactor([secret])(a.CmdRun(command=text)).command
    assert "canary" not in left
    for _ in range(times):
        left = json.loads(left)["x"]
    assert MARK in left


@pytest.mark.parametrize(
    "between", ["\x1b[31m", "\x1b[0m\x1b[1m", "\u200b", "\u00ad", "\u2060", "\x00", "\x1b]0;t\x07"]
)
def test_colours_and_invisible_characters_do_not_hide_a_secret(between: str) -> None:
    text = f"token: {between.join(SHORT_TOKEN)} end"
    assert redactor(o.CmdOutput(content=text)).content == f"token: {MARK} end"


def test_characters_that_a_trace_drops_do_not_hide_a_secret() -> None:
    # Otherwise the renderer would put the secret together again.
    for code in (*range(0x3000), *range(0xF000, 0x10000), *range(0xE0000, 0xE1000)):
        if clean(f"a{chr(code)}b") == "ab":
            hidden = chr(code).join(MODEL_KEY)
            assert redactor(o.CmdOutput(content=hidden)).content == MARK, hex(code)


def deep(value: object, depth: int) -> object:
    for _ in range(depth):
        value = [value]
    return value


def test_all_fields_at_any_depth_are_searched() -> None:
    call = RequestedToolCall(id="1", name="run", arguments=json.dumps({"c": SHORT_TOKEN}))
    events = [
        a.McpCall(server="s", name="n", arguments={SHORT_TOKEN: [{"k": ("x", SHORT_TOKEN)}]}),
        life.ModelReplied(completion=Completion(model="m", text=SHORT_TOKEN, tool_calls=(call,))),
        a.CmdRun(command="true", tool_call=ToolCall(id="1", name="r", arguments=SHORT_TOKEN)),
        o.McpResult(structured={"a": {"b": {"c": SHORT_TOKEN}}}),
        life.SystemPrompt(content="x", tools=("a", SHORT_TOKEN)),
        parse_logged_event({"kind": "from_the_future", "new": [{"x": SHORT_TOKEN}]}),
        a.CmdRun.model_validate({"command": "x", "added_later": {"x": SHORT_TOKEN}}),
        a.McpCall(server="s", name="n", arguments={"x": deep(SHORT_TOKEN, 90)}),
    ]
    for event in events:
        redacted = redactor(event)
        line = dump_line(redacted)
        assert SHORT_TOKEN in dump_line(event)
        assert SHORT_TOKEN not in line
        assert MARK in line
        assert type(parse_line(line.encode())) is type(event)


def deep_in_mappings(value: object, depth: int) -> object:
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.parametrize("nest", [deep, deep_in_mappings])
def test_the_last_depth_that_is_searched_is_the_hundredth(
    nest: Callable[[object, int], object],
) -> None:
    # The event is the first level, its arguments are the second.
    event = a.McpCall(server="s", name="n", arguments={"x": nest("innocent", MAX_DEPTH - 1)})
    assert redactor(event) is event
    for depth in (MAX_DEPTH, 800):
        deeper = a.McpCall(server="s", name="n", arguments={"x": nest("innocent", depth)})
        assert "innocent" not in dump_line(redactor(deeper))


def test_constant_fields_are_never_replaced() -> None:
    hasty = Redactor(["cmd_run", "running", "str_replace", "environment"])
    for event in (
        a.CmdRun(command="true"),
        o.AgentStateChanged(state=RunState.RUNNING),
        a.FileEdit(command="str_replace", path="x"),
    ):
        assert hasty(event) is event


def test_short_secrets_are_ignored() -> None:
    assert Redactor(["abc", "", "12345"]).redact_text("abc 12345") == "abc 12345"
    assert Redactor(["123456"]).redact_text("a 123456 b") == f"a {MARK} b"


def test_only_the_body_of_a_pem_key_is_secret() -> None:
    body = [base64.b64encode(bytes(range(i, i + 48))).decode() for i in range(3)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----\n"])
    redact = Redactor([key])
    text = "parses files that start with -----BEGIN RSA PRIVATE KEY-----"
    assert redact(o.CmdOutput(content=text)).content == text
    shown = redact(o.CmdOutput(content=key)).content
    assert all(line not in shown for line in body)
    assert "".join(body)[20:40] not in redact(o.CmdOutput(content="".join(body))).content


@given(st.text())
@example("ghp_ is how a token starts\x1b[0m")
def test_an_event_without_secrets_is_the_same_object(text: str) -> None:
    event = o.CmdOutput(content=text)
    assert redactor(event) is event


@pytest.mark.deep
@pytest.mark.parametrize(
    "text", [LONG_TOKEN * 4_000, LONG_TOKEN[:15] * 130_000, "a" * 2_000_000, "\x1b[3" * 700_000]
)
def test_hostile_megabytes_take_seconds_at_most(text: str) -> None:
    begin = time.perf_counter()
    Redactor([*SECRETS, "a" * 520]).redact_text(text)
    assert time.perf_counter() - begin < 20
