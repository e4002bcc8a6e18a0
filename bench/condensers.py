"""What each condenser makes of long runs: tokens that the model is sent, and which facts of the run
the last call can still be answered from.

    python bench/condensers.py [--steps 200 500 1000] [--tokens 100000] [--condensers NAME ...]
    python bench/condensers.py --log events.jsonl --tokens 3000

A run of the CodeAct agent through the real controller, with a scripted model and a sandbox that
cost nothing: it reads, searches, edits, tests, plans, asks, with outputs of the sizes that commands
have. Facts are planted into its first 20 steps and into its middle, each once; at the end each is
looked up, as text, in what the last call was sent. Models of condensers are a stand-in, which
quotes the first sentence of each step that it is shown until 3,000 characters are full, or keeps
every third step: the figures say what such a condenser costs and carries over, not how well a model
writes. One JSON line for each condenser and length. With --log a recorded run's events are
condensed as they came.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.agents.codeact import CodeActAgent
from resolver.config.agent_settings import PARAMETERS, parse_condenser
from resolver.controller.controller import AgentController
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import Source
from resolver.events.lifecycle import Condensation, LimitsExtended, ModelReplied, ServiceReplied
from resolver.events.log import read_log
from resolver.events.observations import Observation
from resolver.events.state import State
from resolver.events.stores import JsonlStore
from resolver.events.stream import EventStream, utc_now
from resolver.llm.base import ChatMessage, RecordedModel, ToolSpec
from resolver.llm.library import litellm
from resolver.memory.condensers.registry import CondenserParts, LogCondenser, make_condenser
from resolver.memory.condensers.summaries import SummaryClient
from resolver.memory.condensers.view import SizeBound
from resolver.memory.conversation import ConversationMemory
from resolver.models.run import Completion, RequestedToolCall, RunLimits, Tokens

ALL = (*(n for n in PARAMETERS if n != "browser"), "browser,masking,importance")
"""A row of its own for `browser` would be that of `none`: nothing is browsed."""

SIZES = (200, 200, 500, 500, 1_000, 1_000, 2_000, 4_000, 8_000, 32_000)

FACTS = {
    "file edited early": ["src/ledger/rounding.py"],
    "why it was edited": ["banker's rounding"],
    "file changed by the shell": ["conf/limits.toml"],
    "test that failed once": ["test_half_even", "exit code 1"],
    "last result of the suite": ["317 passed", "pytest -q"],
    "plan item to do": ["write the migration note"],
    "user's decision in the middle": ["keep Python 3.9 working"],
    "question and its answer": ["Which currency table?", "the one of 2019"],
    "note to self (think)": ["cache key leaves out the locale"],
    "finding in plain words": ["the importer strips the sign"],
    "command that failed": ["make schema-diff"],
    "file viewed once": ["docs/adr/0042-money.md"],
    "path in an output, once": ["vendor/legacy/oddball_handler.c"],
    "note to self, in the middle": ["the retry loop swallows timeouts"],
    "finding in words, in the middle": ["totals come from the view"],
    "file viewed once, in the middle": ["src/totals/view_of_sums.sql"],
    "file edited, in the middle": ["src/totals/sums.py"],
}
"""What is planted, and the words it is found by."""


@dataclass(frozen=True)
class Step:
    """One reply of the scripted model."""

    text: str
    tool: str
    arguments: dict[str, Any]


PLANTED = {
    3: Step("I plan.", "plan", {"items": ["find the cause", "write the migration note"]}),
    6: Step("Search.", "execute_bash", {"command": "grep -rn handler vendor"}),
    7: Step("", "think", {"thought": "The cache key leaves out the locale, so hits mix."}),
    8: Step("It shows that the importer strips the sign.", "execute_bash", {"command": "cat i.py"}),
    9: Step("", "str_replace_editor", {"command": "view", "path": "docs/adr/0042-money.md"}),
    10: Step(
        "Use banker's rounding, as the ADR wants.",
        "str_replace_editor",
        {
            "command": "str_replace",
            "path": "src/ledger/rounding.py",
            "old_str": "round(x)",
            "new_str": "half_even(x)",
        },
    ),
    11: Step("", "execute_bash", {"command": "sed -i 's/10/20/' conf/limits.toml"}),
    12: Step("", "execute_bash", {"command": "python -m pytest -q tests/test_rounding.py"}),
    13: Step("", "execute_bash", {"command": "make schema-diff"}),
    15: Step("Which currency table?", "", {}),
}


MIDDLE = (
    Step("", "think", {"thought": "So the retry loop swallows timeouts."}),
    Step("I see: totals come from the view.", "execute_bash", {"command": "cat t.sql"}),
    Step("", "str_replace_editor", {"command": "view", "path": "src/totals/view_of_sums.sql"}),
    Step(
        "Sum in cents.",
        "str_replace_editor",
        {
            "command": "str_replace",
            "path": "src/totals/sums.py",
            "old_str": "sum(x)",
            "new_str": "sum_cents(x)",
        },
    ),
)
"""What is planted from the middle of the run on."""


class Agent:
    """The scripted model of the agent."""

    name = "scripted"
    supports_vision = False
    supports_tools = True

    def __init__(self, steps: int, counter: "Counter") -> None:
        self._steps = steps
        self._counter = counter
        self._random = random.Random(11)
        self.asked = 0
        self.sent: list[list[ChatMessage]] = []

    def complete(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None = None,  # noqa: ARG002 - they are alike in each call
    ) -> Completion:
        """The next reply."""
        self.sent.append(messages)
        self.asked += 1
        if self.asked > self._steps:
            step = Step("", "finish", {"message": "done"})
        else:
            middle = dict(enumerate(MIDDLE, start=self._steps // 2))
            step = PLANTED.get(self.asked) or middle.get(self.asked) or self._ordinary()
        calls: tuple[RequestedToolCall, ...] = ()
        if step.tool:
            arguments = json.dumps(step.arguments)
            calls = (RequestedToolCall(id=f"c{self.asked}", name=step.tool, arguments=arguments),)
        tokens = Tokens(input=sum(map(self._counter.tokens, messages)))
        return Completion(
            model="scripted", text=step.text, tool_calls=calls, tokens=tokens, cost=0.0
        )

    def _ordinary(self) -> Step:
        step_number, choice = self.asked, self._random.random()
        module = f"src/pkg_{self._random.randrange(40)}/mod_{self._random.randrange(9)}.py"
        if choice < 0.35:
            return Step("I read it.", "str_replace_editor", {"command": "view", "path": module})
        if choice < 0.65:
            command = f"grep -rn 'name_{step_number}' src"
            return Step("I look for callers.", "execute_bash", {"command": command})
        if choice < 0.80:
            edit = {
                "command": "str_replace",
                "path": module,
                "old_str": "a",
                "new_str": f"b{step_number}",
            }
            return Step(f"This is case {step_number} of the same.", "str_replace_editor", edit)
        if choice < 0.95:
            return Step("", "execute_bash", {"command": "pytest -q"})
        return Step("", "execute_bash", {"command": f"ls src/pkg_{step_number % 40}"})


class ScriptedCondenserModel:
    """The scripted model of a condenser."""

    name = "stand-in"
    supports_vision = False
    supports_tools = False

    def complete(
        self,
        messages: list[ChatMessage],
        tools: list[ToolSpec] | None = None,  # noqa: ARG002 - it has none
    ) -> Completion:
        """Numbers of every third step, or first sentences."""
        question = str(messages[-1]["content"])
        if "Write the numbers" in question:
            count = len(re.findall(r"^\d+\. ", question, re.MULTILINE))
            text = ", ".join(str(number) for number in range(1, count + 1, 3))
            return Completion(model=self.name, text=text, cost=0.0)
        step_texts = re.findall(r"^## Step \d+\n+(.+)", question, re.MULTILINE)
        earlier_lines = re.findall(
            r"^- (.+)", question.partition("# What is going")[0], re.MULTILINE
        )
        new_lines = [line for line in dict.fromkeys([*earlier_lines, *step_texts]) if line]
        text = "\n".join(f"- {line[:200]}" for line in new_lines)[:3_000]
        if "JSON object" in question:
            text = json.dumps({"findings": [line[:200] for line in new_lines][:12]})
        return Completion(model=self.name, text=text, cost=0.0)


class Sandbox:
    """Answers at once."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self._tests = 0

    def execute(self, action: SandboxAction) -> Observation:
        """The planted answers, or a text of some size."""
        match action:
            case a.FileEdit(path=path, old_str=old, new_str=new):
                return o.FileEditResult(path=path, diff=f"@@ -1 +1 @@\n-{old}\n+{new}\n")
            case a.FileRead(path=path):
                return o.FileReadResult(path=path, content=self._lines())
            case a.CmdRun(command=command):
                return self._ran(command)
            case _:
                raise AssertionError(action)

    def _ran(self, command: str) -> o.CmdOutput:
        if "test_rounding" in command:
            end = "FAILED tests/test_rounding.py::test_half_even - assert 2 == 3\n1 failed in 0.2s"
            return o.CmdOutput(content=f"{self._lines()}\n{end}", exit_code=1)
        if command == "pytest -q":
            self._tests += 1
            return o.CmdOutput(
                content=f"{self._lines()}\n317 passed in 9.{self._tests}s", exit_code=0
            )
        if "handler" in command:
            text = (
                f"{self._lines()}\nvendor/legacy/oddball_handler.c:7: int handler\n{self._lines()}"
            )
            return o.CmdOutput(content=text, exit_code=0)
        return o.CmdOutput(content=self._lines(), exit_code=2 if "schema" in command else 0)

    def _lines(self) -> str:
        size = self._random.choice(SIZES)
        words = (f"{self._random.randrange(10**6)}" for _ in range(size // 7))
        return "\n".join(" ".join(line) for line in _grouped(list(words), 10))


def _grouped(words: list[str], size: int) -> Iterable[list[str]]:
    return (words[position : position + size] for position in range(0, len(words), size))


class Counter:
    """Tokens of messages, each counted once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._seen: dict[int, tuple[ChatMessage, str]] = {}

    def text(self, message: ChatMessage) -> str:
        """The message as text; one that was seen is not written anew."""
        if id(message) not in self._seen:
            self._seen[id(message)] = message, json.dumps(message, ensure_ascii=False)
        return self._seen[id(message)][1]

    def tokens(self, message: ChatMessage) -> int:
        """Of one message."""
        text = self.text(message)
        if text not in self._known:
            self._known[text] = litellm().token_counter(model="gpt-4o", text=text)
        return self._known[text]


def parts(stream: EventStream, tokens: int, sent: list[list[ChatMessage]]) -> CondenserParts:
    """What condensers are made of. sent: what the stand-in is asked."""

    def record(completion: Completion) -> None:
        stream.add(ServiceReplied(service="condenser", completion=completion))

    class Noting(ScriptedCondenserModel):
        def complete(
            self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
        ) -> Completion:
            sent.append(messages)
            return super().complete(messages, tools)

    model = RecordedModel(Noting(), record)
    return CondenserParts(
        SizeBound(tokens), lambda: SummaryClient(model, lambda about, what: print(about, what))
    )


def measure(name: str, steps: int, bound: int, counter: Counter) -> dict[str, object]:
    """One run with one condenser."""
    with tempfile.TemporaryDirectory() as folder:
        stream, state = EventStream(JsonlStore(Path(folder) / "events.jsonl")), State()
        stream.subscribe("state", state.apply, essential=True)
        limits = RunLimits(max_iterations=steps + 50, max_budget=1.0, max_time=86_400)
        stream.add(LimitsExtended(limits=limits))
        model, condenser_requests = Agent(steps, counter), list[list[ChatMessage]]()
        after: list[int] = []

        def watch(event: object) -> None:
            if isinstance(event, Condensation):
                after.append(model.asked)
            elif isinstance(event, a.Message) and event.wait_for_response:
                words = "Take the one of 2019. And keep Python 3.9 working."
                stream.add(a.Message(content=words, source=Source.USER))

        stream.subscribe("telemetry", watch)
        recorded = RecordedModel(model, lambda reply: _record(stream, reply))
        agent = CodeActAgent(recorded, "tools")

        def condensers(its: EventStream) -> LogCondenser:
            return LogCondenser(
                make_condenser(parse_condenser(name), parts(its, bound, condenser_requests))
            )

        controller = AgentController(agent, stream, state, Sandbox(), condensers, utc_now)
        stream.add(agent.system_prompt())
        stream.add(a.Message(content="Sums are off by one cent.", source=Source.USER))
        outcome = controller.run()
        assert outcome.state.value == "finished", outcome.reason
    return {
        "condenser": name,
        "steps": steps,
        "condensations": len(after),
        **costs(model.sent, after, condenser_requests, counter),
        "facts": kept_facts(model.sent[-1], counter),
    }


def _record(stream: EventStream, completion: Completion) -> None:
    stream.add(ModelReplied(completion=completion))


def costs(
    sent: list[list[ChatMessage]],
    after: list[int],
    condenser_requests: list[list[ChatMessage]],
    counter: Counter,
) -> dict[str, object]:
    """Tokens of the agent's calls and of the condenser's, the longest call, and the share that is
    an unchanged beginning of the call before."""
    totals = [sum(map(counter.tokens, messages)) for messages in sent]
    unchanged = between = between_unchanged = 0
    for number, (previous, current) in enumerate(pairwise(sent), start=1):
        same = 0
        for one, other in zip(previous, current, strict=False):
            if counter.text(one) != counter.text(other):
                break
            same += counter.tokens(other)
        unchanged += same
        if number not in after:
            between, between_unchanged = between + totals[number], between_unchanged + same
    return {
        "input_tokens": sum(totals),
        "longest_call": max(totals),
        "condenser_tokens": sum(
            counter.tokens(m) for messages in condenser_requests for m in messages
        ),
        "unchanged_prefix": round(unchanged / max(1, sum(totals[1:])), 3),
        "between_condensations": round(between_unchanged / max(1, between), 3),
    }


def kept_facts(messages: list[ChatMessage], counter: Counter) -> dict[str, bool]:
    """Which of the planted facts are in the messages."""
    text = "\n".join(str(m.get("content") or "") + counter.text(m) for m in messages)
    return {fact: all(word in text for word in words) for fact, words in FACTS.items()}


def condense_log(path: Path, name: str, bound: int, counter: Counter) -> dict[str, object]:
    """A recorded run, condensed as it came; its own condensations are left out."""
    state, memory = State(), ConversationMemory("tools")
    sent: list[list[ChatMessage]] = []
    after: list[int] = []
    ids: dict[int, int] = {}
    stream_free = CondenserParts(
        SizeBound(bound), lambda: SummaryClient(ScriptedCondenserModel(), lambda *_: None)
    )
    condensing = LogCondenser(make_condenser(parse_condenser(name), stream_free))
    for event in read_log(path):
        if isinstance(event, Condensation):
            continue
        number = ids[event.id] = len(state.events)
        if isinstance(event, ModelReplied):
            found = condensing.condense(state)
            if found is not None:
                state.apply(found.model_copy(update={"id": number}))
                after.append(len(sent))
                number = ids[event.id] = len(state.events)
            sent.append(memory.messages(state))
        moved = {
            key: ids[value]
            for key in ("cause", "reply", "delegate")
            if (value := getattr(event, key, None)) is not None
        }
        state.apply(event.model_copy(update={"id": number, **moved}))
    files = {path: path in str(sent[-1]) for path in state.files_touched}
    return {
        "condenser": name,
        "log": path.name,
        "condensations": len(after),
        **costs(sent, after, [], counter),
        "files": files,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[200, 500, 1_000])
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--condensers", nargs="+", default=list(ALL))
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    for name in arguments.condensers:
        if arguments.log:
            print(json.dumps(condense_log(arguments.log, name, arguments.tokens, Counter())))
            continue
        for steps in arguments.steps:
            print(json.dumps(measure(name, steps, arguments.tokens, Counter())), flush=True)


if __name__ == "__main__":
    main()
