"""Small tasks with known answers, which need nothing but a shell."""

import json
from pathlib import Path

from resolver.evaluation.task_format import (
    EXPECTED_FILE,
    HIDDEN_FILES,
    REPOSITORY_FOLDER,
    SOLUTION_PATCH,
    HiddenTests,
    TaskConfig,
    TaskIdentity,
    TaskMetadata,
    write_task,
)

CHECK = "tests/check.sh"
PATCH = """diff --git a/value.txt b/value.txt
--- a/value.txt
+++ b/value.txt
@@ -1 +1 @@
-wrong
+{value}
"""


def write_suite(folder: Path, count: int) -> None:
    """Write a suite of tasks whose fix is one line."""
    for number in range(count):
        name, value = f"task-{number:03}", f"right {number}"
        hidden = HiddenTests(command=f"sh {CHECK}", files=(CHECK,))
        config = TaskConfig(
            task=TaskIdentity(name=f"bench/{name}"), metadata=TaskMetadata(resolver=hidden)
        )
        files = {
            f"{REPOSITORY_FOLDER}/value.txt": b"wrong\n",
            f"{HIDDEN_FILES}/{CHECK}": f'test "$(cat value.txt)" = "{value}"\n'.encode(),
            EXPECTED_FILE: json.dumps({"fail_to_pass": ["hidden tests"]}).encode(),
            SOLUTION_PATCH: PATCH.format(value=value).encode(),
        }
        write_task(folder / name, config, f"# Value of {name}\n\nIt is to be {value}.", files)
