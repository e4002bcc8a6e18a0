"""Tests of the window condenser."""

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.memory.condensers.rules import ConversationWindow
from resolver.memory.condensers.view import CHARACTERS_PER_TOKEN, LogCondenser
from resolver.memory.conversation import ConversationMemory
from tests.memory.condensers.scenarios import condense, filled, sent_text
from tests.memory.logs import Log, started, task
from tests.memory.test_conversation import assert_pairs_are_complete

LARGE = 10**6


def test_a_size_that_the_endpoint_names_is_the_limit_from_then_on() -> None:
    log = filled(100)
    condensing = LogCondenser(ConversationWindow(), lambda: LARGE)
    log.add(a.CondensationRequest(tokens=9_000, max_tokens=1_000))
    condensation = condensing.condense(log.state)
    assert condensation is not None
    log.add(condensation)
    assert len(sent_text(log)) < 1_000 * CHARACTERS_PER_TOKEN
    while condensing.condense(log.state) is None:
        log.turn(a.CmdRun(command="ls"), o.CmdOutput(content="x" * 400, exit_code=0))
    assert len(sent_text(log)) < 3_000 * CHARACTERS_PER_TOKEN, "long before the bound of LARGE"


def test_repeated_requests_end_with_nothing_more_to_forget() -> None:
    log = filled(30)
    log.add(task("and mind the tests"))
    rounds = 0
    while True:
        log.add(a.CondensationRequest())
        if condense(log, ConversationWindow(), LARGE) is None:
            break
        rounds += 1
    assert 2 <= rounds < 14
    shown = sent_text(log)
    assert "rules" in shown and "fix it" in shown and "and mind the tests" in shown
    assert "say 29'" in shown


def test_a_single_turn_that_is_too_large_is_masked_when_nothing_else_can_go() -> None:
    log = started()
    reply = log.reply(*[("execute_bash", "{}")] * 20)
    for number in range(20):
        cause = log.add(a.CmdRun(command=f"c{number}", reply=reply))
        log.add(o.CmdOutput(content="x" * 30_000, exit_code=0, cause=cause))
    log.add(a.CondensationRequest())
    condensation = condense(log, ConversationWindow(), LARGE)
    assert condensation is not None and len(condensation.masked) == 20
    assert len(sent_text(log)) < 20_000
    assert_pairs_are_complete(ConversationMemory().messages(log.state))
    log.add(a.CondensationRequest())
    assert condense(log, ConversationWindow(), LARGE) is None


def test_tokens_are_counted_by_what_the_last_call_had() -> None:
    log = filled(35)
    last = log.state.events[-3]
    assert condense(log, ConversationWindow(), 10_000) is None
    completion = last.completion.model_copy(
        update={"tokens": last.completion.tokens.model_copy(update={"input": 15_000})}
    )
    again = Log(*log.state.events[:-3], last.model_copy(update={"completion": completion}))
    again.add(log.state.events[-2])
    again.add(log.state.events[-1])
    assert condense(again, ConversationWindow(), 10_000) is not None
