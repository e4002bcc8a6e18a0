"""Compares the parser of shell text with tree-sitter-bash: commands of a live model and hostile
repetitions of one piece.

    python bench/shell_parser.py FOLDER
    PYTHON bench/shell_parser.py FOLDER --peer

FOLDER has trajectories of mini-swe-agent (`*.traj.json`). PYTHON has tree-sitter and
tree-sitter-bash, which are no dependencies of Resolver.
"""

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

PIECES = (")", "}", "<<A\n", "{", "$(", "`", "case x in a)", "if ", "[[ ")
SIZES = (4_096, 16_384, 65_536)
_BLOCK = re.compile(r"```bash\s*\n(.*?)\n```", re.S)


def recorded_commands(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.glob("*.traj.json")):
        for message in json.loads(path.read_text())["messages"]:
            if message["role"] == "assistant":
                found += _BLOCK.findall(message["content"])
    return found


def own_parser() -> Callable[[str], object]:
    from resolver.security.shell.syntax import parse

    return parse


def peer_parser() -> Callable[[str], object]:
    import tree_sitter
    import tree_sitter_bash

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return lambda text: parser.parse(text.encode())


def seconds(parse: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    parse(text)
    return time.process_time() - started


def main() -> None:
    commands = recorded_commands(Path(sys.argv[1]))
    started = time.process_time()
    parse = peer_parser() if "--peer" in sys.argv else own_parser()
    print(f"import: {1000 * (time.process_time() - started):.0f} ms")
    total = sum(seconds(parse, command) for command in commands)
    print(f"{len(commands)} recorded commands: {1000 * total / len(commands):.3f} ms each")
    for piece in PIECES:
        times = [seconds(parse, (piece * size)[:size]) for size in SIZES]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{piece!r}: {', '.join(f'{t:.3f}' for t in times)} s; at most {memory:.0f} MB")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
