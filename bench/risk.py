"""How the rules about risky commands do on the labeled lists of tests/security/commands: false
alarms on ordinary work, what of the dangerous they see, and what a judgement costs.

    python bench/risk.py

Each list is cut in two by a hash: the rules were written with one half and never saw the other.
The lists `..._later` were written after the rules.
"""

import statistics
import time
from collections import Counter

from resolver.events.actions import CmdRun
from resolver.models.approval import RiskLevel
from resolver.security.risk.analyzer import RuleAnalyzer
from tests.security.command_lists import commands, is_held_back

LISTS = tuple(
    f"{kind}{when}" for kind in ("ordinary", "dangerous") for when in ("", "_later", "_others")
)


def main() -> None:
    analyzer = RuleAnalyzer()
    print("| list | half | commands | high | medium | low | median ms |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name in LISTS:
        for half, held_back in (("written with", False), ("held back", True)):
            levels: Counter[RiskLevel] = Counter()
            times = []
            for command in commands(name):
                if is_held_back(command) is not held_back:
                    continue
                started = time.perf_counter()
                levels[analyzer.assess(CmdRun(command=command)).level] += 1
                times.append(1000 * (time.perf_counter() - started))
            print(
                f"| {name} | {half} | {len(times)} | {levels[RiskLevel.HIGH]} "
                f"| {levels[RiskLevel.MEDIUM]} | {levels[RiskLevel.LOW]} "
                f"| {statistics.median(times):.2f} |"
            )


if __name__ == "__main__":
    main()
