"""Determines what a command writes to its standard output: the exact text if it is known (`echo`,
`printf`, `base64 -d` of a known text), otherwise only the origins of the data.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from posixpath import basename, join

from resolver.security.risk.expansion import Flow, replace_escapes
from resolver.security.risk.findings import (
    DECODED,
    ENCODED,
    ENVIRONMENT,
    FETCHED,
    FILE,
    IDENTITY,
    SECRET,
    SECRET_FILE,
    is_secret_name,
)
from resolver.security.risk.hosts import NetworkHost, is_installer, judge_host
from resolver.security.risk.walk import ShellCall, ShellWalk

MAX_TEXT_CHARACTERS = 100_000
"""Maximum characters of a text that is tracked."""

READERS = frozenset(
    [
        *("cat", "bat", "head", "tail", "less", "more", "tac", "nl", "sort", "uniq", "cut", "grep"),
        *("egrep", "fgrep", "rg", "ag", "zgrep", "zcat", "sed", "awk", "gawk", "strings", "od"),
        *("hexdump", "fold", "rev", "column", "paste", "jq", "yq", "xmllint", "tee", "tr", "dd"),
        *("cp", "mv", "tar", "zip", "7z", "scp", "rsync", "sqlite3", "gpg", "openssl", "diff"),
        *("cmp", "comm", "wc", "file", "source", ".", "python", "python3", "node", "ruby", "perl"),
        *("install", "ln", "base64", "base32", "xxd", "uuencode", "gzip", "bzip2", "xz", "zstd"),
        *("split", "csplit", "curl", "wget", "nc", "mail", "pbcopy", "xclip", "vim", "vi", "nano"),
        *("ed", "view", "bash", "sh", "zsh", "xargs", "read", "mapfile", "readarray", "md5sum"),
        *("sha256sum", "shasum", "sha1sum", "cksum"),
    ]
)
"""Commands that show, copy or send the content of the files they are given."""

_ENCODERS = frozenset({"base64", "base32", "xxd", "od", "hexdump", "uuencode", "basenc"})
_PACKERS = frozenset({"tar", "zip", "gzip", "bzip2", "xz", "zstd", "7z", "cpio", "ar"})
_IDENTITY_COMMANDS = frozenset({"whoami", "hostname", "id", "logname", "hostid"})
_INSECURE_OPTIONS = ("--insecure", "--proxy", "--resolve", "--connect-to", "--no-check-certificate")
"""Options with which another machine than the URL's host may answer."""


def output_of(call: ShellCall, walk: ShellWalk) -> Flow:
    """Return what the call writes, except the output of commands that it runs."""
    output_function = _OUTPUTS.get(call.name)
    flow = output_function(call, walk) if output_function else Flow(None)
    tags = set(flow.tags) | set(call.tags)
    if call.name not in {"echo", "printf", "export", "test", "["}:
        tags |= call.stdin.tags
    tags |= _own_tags(call)
    text = flow.text if flow.text is None or len(flow.text) <= MAX_TEXT_CHARACTERS else None
    return Flow(text, frozenset(tags))


def _own_tags(call: ShellCall) -> set[str]:
    name, tags = call.name, set[str]()
    if name in {"env", "set", "export", "declare", "compgen"} and not _has_other_effect(call):
        tags.add(ENVIRONMENT)
    elif name == "printenv":
        names = call.operands
        names_secret = any(is_secret_name(variable) for variable in names)
        tags |= {ENVIRONMENT} if not names else {SECRET} if names_secret else set()
    elif name in _IDENTITY_COMMANDS:
        tags.add(IDENTITY)
    elif name in {"curl", "wget", "http", "https", "aria2c", "lynx", "fetch"}:
        is_verified = not call.has("kx", *_INSECURE_OPTIONS)
        for url in urls_of(call):
            if judge_host(url) in {NetworkHost.ELSEWHERE, NetworkHost.METADATA}:
                tags |= set() if is_verified and is_installer(url) else {FETCHED}
    elif name == "git" and call.args[:1] and call.args[0] in {"archive", "bundle", "show", "diff"}:
        tags.add(FILE)
    if name in _ENCODERS or (name == "openssl" and call.args[:1] in {("base64",), ("enc",)}):
        tags.add(DECODED if call.has("dD", "--decode") and name != "od" else ENCODED)
    files = (*call.operands, *call.reads_from)
    if name in READERS or call.reads_from:
        tags |= _tags_of_files(call, files)
    if name in _PACKERS and files:
        tags.add(FILE)
    return tags


def _tags_of_files(call: ShellCall, files: tuple[str, ...]) -> set[str]:
    tags: set[str] = set()
    for path in files:
        if path in {"-", "/dev/null", "/dev/stdin", "/dev/fd/63"} or path.startswith("-"):
            continue
        tags.add(FILE)
        if call.paths.is_credential(path):
            tags.add(SECRET)
        if SECRET_FILE.search(basename(path)):
            tags.add(SECRET)
    return tags


def _has_other_effect(call: ShellCall) -> bool:
    """Return True if the arguments make a command such as `env` or `set` do something other than
    print the environment."""
    return bool(call.operands) or call.has("euxofi", "--posix") or len(call.args) > 1


def urls_of(call: ShellCall) -> tuple[str, ...]:
    """Return the URLs among the arguments of a download program. If `curl`, `wget` or HTTPie has
    none, operands that look like a host are returned."""
    urls = [w for w in call.args if "://" in w]
    if call.name in {"curl", "wget", "http", "https"} and not urls:
        for word in call.operands:
            host = re.match(r"(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,20}(?:[:/?]|$)", word)
            if host or re.match(
                r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\$\{\w+\})(?:[:/?]|$)", word
            ):
                urls.append(word)
    return tuple(w.partition("=")[2] if w.startswith("--") and "=" in w else w for w in urls)


def downloaded_files(call: ShellCall) -> Iterator[str]:
    """Yield the files that a curl or wget call writes."""
    is_wget = call.name == "wget"
    own_name = is_wget or call.has("O", "--remote-name")
    folder = ""
    for arg, following in pairwise((*call.args, "")):
        option, _, value = arg.partition("=")
        if option in {"--output", "--output-document"}:
            yield value or following
        elif re.fullmatch("-[A-Za-z]*[oO]" if is_wget else "-[A-Za-z]*o", arg):
            yield following
        elif is_wget and option in {"-P", "--directory-prefix"}:
            folder = value or following
    for url in urls_of(call) if own_name else ():
        yield join(folder, url.partition("?")[0].rstrip("/").rpartition("/")[2])


def _echo(call: ShellCall, _: ShellWalk) -> Flow:
    args = list(call.args)
    ends_line, has_escapes = True, False
    while args and re.fullmatch(r"-[neE]{1,3}", args[0]):
        ends_line = ends_line and "n" not in args[0]
        has_escapes = has_escapes or "e" in args[0]
        args.pop(0)
    text = " ".join(args)
    text = replace_escapes(text) if has_escapes else text
    return Flow(text + ("\n" if ends_line else ""))


def _printf(call: ShellCall, _: ShellWalk) -> Flow:
    args = [arg for arg in call.args if arg != "--"]
    if not args:
        return Flow("")
    if args[0] == "-v":
        return Flow(None)
    form, values = replace_escapes(args[0]), args[1:]
    parts = re.split(r"%(?:[-+ 0#]{0,3}\d{0,4}(?:\.\d{1,4})?[a-zA-Z%])", form)
    if len(parts) == 1:
        return Flow(form)
    text = parts[0]
    repetitions = max(1, -(-len(values) // max(1, len(parts) - 1)))
    for index in range(min(repetitions, 500) * (len(parts) - 1)):
        value = values[index] if index < len(values) else ""
        text += value + parts[1 + index % (len(parts) - 1)]
    return Flow(text)


def _cat(call: ShellCall, walk: ShellWalk) -> Flow:
    operands = [operand for operand in call.operands if operand != "-"]
    if call.name == "tee":
        return call.stdin
    if not operands:
        paths = [call.paths.absolute(file_path) for file_path in call.reads_from]
        if paths:
            return Flow("".join(walk.written.get(file_path, "") for file_path in paths) or None)
        return call.stdin
    texts = [walk.written.get(call.paths.absolute(path)) for path in operands]
    tags = (
        {FETCHED}
        if any(call.paths.absolute(file_path) in walk.fetched for file_path in operands)
        else set()
    )
    known_texts = [file_text for file_text in texts if file_text is not None]
    return Flow("".join(known_texts) if len(known_texts) == len(texts) else None, frozenset(tags))


def _base64(call: ShellCall, _: ShellWalk) -> Flow:
    text = call.stdin.text
    files = [operand for operand in call.operands if operand not in {"-", "base64", "enc"}]
    if text is None or files or not call.has("dD", "--decode") or len(text) > MAX_TEXT_CHARACTERS:
        return Flow(None)
    return Flow(decoded_base64(text))


def decoded_base64(text: str) -> str | None:
    """Decode base64 or base64url text, ignoring other characters; None if it can't be decoded."""
    data = (
        re.sub(r"[^A-Za-z0-9+/_-]", "", text[:MAX_TEXT_CHARACTERS])
        .replace("-", "+")
        .replace("_", "/")
    )
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _xxd(call: ShellCall, _: ShellWalk) -> Flow:
    text = call.stdin.text
    if text is None or call.operands or not call.has("r") or len(text) > MAX_TEXT_CHARACTERS:
        return Flow(None)
    digits = re.sub(r"[^0-9a-fA-F]", "", text)
    return Flow(bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8", "replace"))


def _rev(call: ShellCall, _: ShellWalk) -> Flow:
    text = call.stdin.text
    if text is None or call.operands:
        return Flow(None)
    return Flow("\n".join(line[::-1] for line in text.split("\n")))


def _tr(call: ShellCall, _: ShellWalk) -> Flow:
    """Translate characters, as in `tr a-z n-za-m`. A shorter second set is extended by its last
    character; options that delete or squeeze are not supported."""
    text, sets = call.stdin.text, [_expand_set(operand) for operand in call.operands]
    if text is None or len(text) > MAX_TEXT_CHARACTERS or len(sets) != 2 or not sets[1]:
        return Flow(None)
    if call.has("cdst"):
        return Flow(None)
    source_set, target_set = sets[0], sets[1] + sets[1][-1] * len(sets[0])
    return Flow(text.translate({ord(a): b for a, b in zip(source_set, target_set, strict=False)}))


def _expand_set(text: str) -> str:
    def span(match: "re.Match[str]") -> str:
        first, last = ord(match[1]), ord(match[2])
        return "".join(chr(code) for code in range(first, min(last, first + 256) + 1))

    return re.sub(r"([A-Za-z0-9])-([A-Za-z0-9])", span, replace_escapes(text[:500]))


def _nothing(_call: ShellCall, _walk: ShellWalk) -> Flow:
    return Flow("")


def _toplevel(call: ShellCall, _: ShellWalk) -> Flow:
    if call.args[:2] == ("rev-parse", "--show-toplevel"):
        return Flow(call.paths.root + "\n")
    return Flow(None)


def _temporary(_call: ShellCall, _walk: ShellWalk) -> Flow:
    return Flow("/tmp/mktemp\n")  # noqa: S108 - a name that stands for the one it will be


_OUTPUTS: dict[str, Callable[[ShellCall, ShellWalk], Flow]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _cat,
    "base64": _base64,
    "openssl": _base64,
    "xxd": _xxd,
    "rev": _rev,
    "tr": _tr,
    "git": _toplevel,
    "mktemp": _temporary,
    "pwd": lambda call, _: Flow(call.paths.cwd + "\n"),
    "cd": _nothing,
    "true": _nothing,
    "export": _nothing,
    "set": _nothing,
    "": _nothing,
}
