"""Rules for short programs in awk, Perl, Ruby, JavaScript and PHP: shell commands they run, files
and URLs they name. The code is searched with regular expressions, not parsed.
"""

import re
from collections.abc import Callable, Iterator

from resolver.security.risk.findings import RiskFinding, high, medium
from resolver.security.risk.hosts import NetworkHost, judge_host
from resolver.security.risk.paths import PathPlace, Paths

MOST = 100_000
"""Maximum characters that are searched."""

_RUNS = re.compile(
    r"\b(?:system|exec|execSync|spawn|spawnSync|popen|shell_exec|passthru|proc_open|sprintf)\b"
    r"\s{0,3}\(?\s{0,3}(?:'([^'\n]{1,2000})'|\"([^\"\n]{1,2000})\")"
)
_FETCH = re.compile(r"\bfetch\s{0,3}\(|\bhttps?\.request\b|\baxios\b|\bNet::HTTP\b|\bcurl_init\b")
_ENVIRONMENT = re.compile(r"\bprocess\.env\s{0,3}(?![.\w\[\s])|\bENV\.(?:to_h|to_json|inspect|map)")
_BACKTICKS = re.compile(r"`([^`\n]{1,2000})`")
_SOCKET = re.compile(
    r"\bTCPSocket\b|\bfsockopen\b|\buse\s+(?:IO::)?Socket\b|\bsockaddr_in\b|net\.(?:connect|Socket)"
    r"|createConnection"
)
_SHELL = re.compile(r"/bin/(?:ba|da|z)?sh\b|\bsh\s+-i\b|cmd\.exe|\bpopen\b")
_STRING = re.compile(r"'([^'\n]{1,500})'|\"([^\"\n]{1,500})\"")
_REMOVES = re.compile(r"\b(?:rmSync|rmdirSync|rm_rf|rm_r|remove_entry|remove_tree|rmtree|unlink)\b")


def snippet_findings(
    code: str, paths: Paths, run: Callable[[str], object]
) -> Iterator[RiskFinding]:
    """Yield findings about the code. run: called with each shell text that the code runs."""
    code = code[:MOST]
    for found in _RUNS.finditer(code):
        run(found[1] or found[2])
    for found in _BACKTICKS.finditer(code):
        run(found[1])
    if _SOCKET.search(code):
        if _SHELL.search(code):
            yield high("reverse_shell", code)
        else:
            yield medium("raw_connection", code)
    if _FETCH.search(code) and _ENVIRONMENT.search(code):
        known = [text[1] or text[2] for text in _STRING.finditer(code)]
        if any("://" in text and judge_host(text) is NetworkHost.ELSEWHERE for text in known):
            yield high("exfiltration", "sends the environment to another machine")
    removes = bool(_REMOVES.search(code))
    for found in _STRING.finditer(code):
        text = found[1] or found[2]
        if paths.is_credential(text):
            yield high("credential", text)
        elif removes and paths.place(text) in {
            PathPlace.ROOT,
            PathPlace.HOME,
            PathPlace.SYSTEM_TOP,
        }:
            yield high("destructive", f"removes {text}")
        elif "://" in text and judge_host(text) is NetworkHost.METADATA:
            yield high("cloud_metadata", text)
