"""The registry of fuzz targets, and the inputs that are generated for them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from hypothesis import strategies as st

Run = Callable[[bytes], None]


@dataclass(frozen=True)
class FuzzTarget:
    """A parser of outside data with examples of its input.

    seeds: valid inputs, which are mutated.
    objects: returns valid inputs as JSON values, in which values are exchanged at any depth.
    tokens: syntax that means something to the parser.
    """

    run: Run
    seeds: tuple[bytes, ...]
    objects: Callable[[], tuple[Any, ...]]
    tokens: tuple[bytes, ...]

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        return (self.run.__doc__ or "").strip().partition("\n")[0]


TARGETS: dict[str, FuzzTarget] = {}
"""All targets by name. Importing `tests.fuzz.targets` fills it."""


def fuzzed(
    *seeds: str | bytes,
    objects: tuple[Any, ...] | Callable[[], tuple[Any, ...]] = (),
    tokens: str | tuple[str, ...] = (),
) -> Callable[[Run], Run]:
    """Return a decorator that registers a target. A string of tokens is split at spaces."""
    words = tuple(tokens.split(" ")) if isinstance(tokens, str) else tokens

    def register(run: Run) -> Run:
        assert run.__name__ not in TARGETS
        TARGETS[run.__name__] = FuzzTarget(
            run,
            tuple(s.encode() if isinstance(s, str) else s for s in seeds),
            objects if callable(objects) else lambda: objects,
            tuple(word.encode("utf-8", "surrogatepass") for word in words if word),
        )
        return run

    return register


def as_text(data: bytes) -> str:
    """Return the data as text. Half of a surrogate pair, which JSON can hold, is kept."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def as_json(data: bytes) -> Any:
    """Return the JSON value that the data is or begins with, or else the data as text."""
    text = as_text(data)
    try:
        return json.JSONDecoder().raw_decode(text.strip())[0]
    except (ValueError, RecursionError):
        return text


def as_yaml(text: str) -> Any:
    """Return a seed in YAML as a value for `objects`."""
    return json.loads(json.dumps(yaml.load(text, yaml.BaseLoader), default=str))


COMMON_TOKENS = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\xe2\x80\xae", b"\xe2\x80\x8b",
    b"\xf0\x9f\x99\x82", b"e\xcc\x81", b"\xef\xbb\xbf", b"\x1b[31m", b"\x1b]8;;", b"\r", b"\r\n",
    b"\n", b"\n\n", b" ", b"\t", b"'", b'"', b"\\", b"`", b"```", b"<", b">", b"<!--", b"-->", b"&",
    b"{", b"}", b"[", b"]", b"(", b")", b"{{", b"${{", b"$(", b"%", b"%s", b"*", b"&a", b"*a",
    b"!!",
    b"-1", b"0", b"1e999", b"NaN", b"9" * 20, b"9" * 5_000, b"null", b"true", b"/", b"../", b"..",
    b":", b": ", b"- ", b"#", b"@", b"=", b",", b";", b"|", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0c",
)  # fmt: skip
"""Syntax of many formats, and characters that parsers are known to trip over."""

BRACKETS = (
    (b"[", b"]"), (b"{", b"}"), (b"(", b")"), (b'{"a":', b"}"), (b"<a>", b"</a>"), (b"> ", b""),
    (b"<details>", b"</details>"), (b"$(", b")"), (b"'", b"'"), (b"- ", b""), (b"*", b"*"),
)  # fmt: skip

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1e308, float("inf"), float("nan"),
    -0.5, "", " ", "0", "a", "\x00", "\ud800", "\u202e", "\n", "a\nb", "../..", "/etc/passwd",
    "@agent",
    "x" * 300, "x" * 70_000, "9" * 5_000, "{{", "${{ a }}", "$(a)", "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59-14:00", [], {}, [None], {"": None}, [[[[[[]]]]]], {"a": {"a": {"a": {}}}},
    ["a"] * 300, {str(number): number for number in range(300)},
)  # fmt: skip
"""What stands in a field where something else is expected."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all values within a JSON value, itself included."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """Return a copy of a JSON value with another value at the path."""
    if not path:
        return change(value)
    key, *rest = path
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[key] = replaced(copied[key], tuple(rest), change)
    return copied


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def examples_of(target: FuzzTarget) -> tuple[bytes, ...]:
    """Return the valid inputs of a target."""
    return (*target.seeds, *(json.dumps(value).encode() for value in target.objects()))


MAX_OBJECT_BYTES = 1_000_000
"""Limit of a changed value, which repetitions of repetitions would exceed."""


@st.composite
def changed_objects(draw: st.DrawFn, objects: tuple[Any, ...]) -> bytes:
    """Return a valid value as JSON in which a few values have become others."""
    value = draw(st.sampled_from(objects))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(value))))
        odd = draw(st.sampled_from(ODD_VALUES) | st.text(max_size=20))
        change: Callable[[Any], Any]
        match draw(st.sampled_from(("replace", "list", "repeat", "deep", "rename", "text"))):
            case "list":
                change = lambda old: [old]  # noqa: E731
            case "repeat":
                change = lambda old: [old] * 40  # noqa: E731
            case "deep":
                depth = draw(st.sampled_from((5, 60, 400)))
                change = lambda old, depth=depth: nested(old, depth)  # noqa: E731
            case "rename":
                change = lambda old, odd=odd: (  # noqa: E731
                    {str(odd): old, **old} if isinstance(old, dict) else odd
                )
            case "text":
                change = lambda old, odd=odd: (  # noqa: E731
                    f"{old}{odd}" if isinstance(old, str) else json.dumps(old)
                )
            case _:
                change = lambda old, odd=odd: odd  # noqa: E731
        changed = replaced(value, path, change)
        if len(json.dumps(changed)) <= MAX_OBJECT_BYTES:
            value = changed
    return json.dumps(value).encode()


@st.composite
def changed_bytes(draw: st.DrawFn, target: FuzzTarget, max_size: int) -> bytes:
    """Return a valid input with parts removed, repeated, nested and replaced by other syntax."""
    data = bytearray(draw(st.sampled_from(target.seeds)))
    tokens = st.sampled_from((*target.tokens, *COMMON_TOKENS))
    if target.tokens:
        tokens = st.sampled_from(target.tokens) | tokens
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        part = bytes(data[start:end])
        match draw(st.sampled_from(("token", "token", "cut", "repeat", "nest", "splice", "noise"))):
            case "token":
                part = draw(tokens) * draw(st.sampled_from((1, 1, 1, 2, 30, max_size)))
            case "cut":
                part = b""
            case "repeat":
                part *= draw(st.sampled_from((2, 3, 50, max_size)))
            case "nest":
                opening, closing = draw(st.sampled_from(BRACKETS))
                depth = draw(st.sampled_from((1, 5, 60, max_size)))
                part = opening * depth + part + closing * depth
            case "splice":
                other = draw(st.sampled_from(target.seeds))
                cut = draw(st.integers(0, len(other)))
                part = other[cut : cut + draw(st.integers(0, 200))]
            case _:
                part = draw(st.binary(max_size=30))
        data[start:end] = part[:max_size]
        del data[max_size:]
    return bytes(data)


def inputs(target: FuzzTarget, max_size: int = 2_000) -> st.SearchStrategy[bytes]:
    """Return the inputs of a target. max_size: limit of a mutated text in bytes."""
    strategies = []
    objects = target.objects()
    if objects:
        strategies.append(changed_objects(objects))
    if target.seeds:
        strategies.append(changed_bytes(target, max_size))
        tokens = st.sampled_from((*target.tokens, *COMMON_TOKENS)) | st.binary(max_size=6)
        strategies.append(
            st.lists(tokens, max_size=30).map(lambda parts: b"".join(parts)[:max_size])
        )
    return st.one_of(strategies)
