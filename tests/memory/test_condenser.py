"""Condensers: what goes, what stays, when."""

from hypothesis import given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import Source
from resolver.events.lifecycle import Condensation, SystemPrompt
from resolver.memory.condenser import NoCondenser, WindowCondenser
from resolver.memory.conversation import ConversationMemory
from tests.memory.logs import Log, started, task
from tests.memory.test_conversation import assert_pairs_are_complete


def filled(turns: int, size: int = 1000) -> Log:
    log = started()
    for number in range(turns):
        result = o.CmdOutput(content="x" * size, exit_code=number % 2)
        log.turn(a.CmdRun(command=f"run {number}"), result, text=f"say {number}")
    return log


def shown(log: Log) -> int:
    return len(str(ConversationMemory().messages(log.state)))


def test_a_short_conversation_is_left_alone() -> None:
    assert WindowCondenser(max_chars=50_000).condense(filled(10).state) is None


def test_a_long_one_loses_whole_turns_of_its_middle() -> None:
    log = filled(40)
    condensation = WindowCondenser(20_000, keep_first=2, keep_last=5).condense(log.state)
    assert condensation is not None
    log.add(condensation)
    told = str(ConversationMemory().messages(log.state))
    assert "say 0'" in told and "say 1'" in told and "say 39'" in told and "say 35'" in told
    assert "say 2'" not in told
    assert_pairs_are_complete(ConversationMemory().messages(log.state))
    assert shown(log) < 20_000


def test_the_same_state_gives_the_same_answer() -> None:
    log = filled(40)
    condenser = WindowCondenser(20_000)
    assert condenser.condense(log.state) == condenser.condense(log.state)
    assert condenser.condense(log.state) == WindowCondenser(20_000).condense(log.state)


def test_a_request_is_answered_below_the_bound() -> None:
    log = filled(40)
    condenser = WindowCondenser(10**9)
    assert condenser.condense(log.state) is None
    before = shown(log)
    log.add(a.CondensationRequest())
    condensation = condenser.condense(log.state)
    assert condensation is not None
    log.add(condensation)
    assert shown(log) < 0.7 * before
    assert condenser.condense(log.state) is None


def test_repeated_requests_end_with_nothing_more_to_forget() -> None:
    log = filled(30)
    log.add(task("and mind the tests"))
    condenser = WindowCondenser(10**9)
    rounds = 0
    while True:
        log.add(a.CondensationRequest())
        condensation = condenser.condense(log.state)
        if condensation is None:
            break
        log.add(condensation)
        rounds += 1
    assert 2 <= rounds < 12
    told = str(ConversationMemory().messages(log.state))
    assert "rules" in told and "fix it" in told and "and mind the tests" in told
    assert "say 29'" in told


def test_a_log_without_turns_has_nothing_to_forget() -> None:
    log = Log(SystemPrompt(content="rules"), task("x" * 10_000), a.CondensationRequest())
    assert WindowCondenser(100).condense(log.state) is None


def test_the_summary_tells_files_commands_and_words_of_all_that_is_gone() -> None:
    log = started()
    log.turn(a.FileEdit(command="insert", path="a.py"), o.FileEditResult(path="a.py"), text="edit")
    log.turn(a.Think(content="the parser is wrong"), o.Null())
    log.turn(a.CmdRun(command="pytest -q"), o.CmdOutput(content="y" * 9000, exit_code=1))
    log.turn(a.FileWrite(path="b.py", content=""), o.ErrorObservation(content="exists"))
    for number in range(12):
        log.turn(a.CmdRun(command=f"c{number}"), o.CmdOutput(content="x" * 1000, exit_code=0))
    condenser = WindowCondenser(8000, keep_first=0, keep_last=4)
    for _ in range(3):
        condensation = condenser.condense(log.state)
        if condensation:
            log.add(condensation)
        for number in range(8):
            log.turn(a.CmdRun(command=f"d{number}"), o.CmdOutput(content="x" * 999, exit_code=0))
    last = [e for e in log.state.events if isinstance(e, Condensation)][-1].summary
    assert "Files changed through the editor: a.py" in last
    assert "b.py" not in last
    assert "[1] pytest -q" in last
    assert "the parser is wrong" in last and "edit" in last


def test_automatic_replies_go_and_the_users_words_stay() -> None:
    log = started()
    log.turn(a.CmdRun(command="a"), o.CmdOutput(content="x" * 5000, exit_code=0))
    log.add(a.Message(content="go on by yourself", source=Source.USER, cause=2))
    log.add(task("but keep the API"))
    log.turn(a.CmdRun(command="b"), o.CmdOutput(exit_code=0))
    log.add(a.CondensationRequest())
    condensation = WindowCondenser(keep_first=0, keep_last=1).condense(log.state)
    assert condensation is not None
    log.add(condensation)
    told = str(ConversationMemory().messages(log.state))
    assert "keep the API" in told
    assert "go on by yourself" not in told


def test_it_does_not_condense_again_at_every_step() -> None:
    log = started()
    condenser = WindowCondenser(20_000, keep_first=2, keep_last=12)
    count = 0
    for number in range(300):
        # what is kept is over the bound by itself: the worst case
        result = o.CmdOutput(content="x" * 3000, exit_code=0)
        log.turn(a.CmdRun(command=str(number)), result)
        condensation = condenser.condense(log.state)
        if condensation:
            count += 1
            log.add(condensation)
    assert 10 < count <= 300
    assert shown(log) < 90_000


def test_no_condenser_forgets_nothing() -> None:
    log = filled(3)
    log.add(a.CondensationRequest())
    assert NoCondenser().condense(log.state) is None


@given(
    sizes=st.lists(st.integers(0, 3000), max_size=30),
    first=st.integers(0, 5),
    last=st.integers(0, 9),
    wanted=st.booleans(),
)
def test_a_condensation_never_parts_a_pair_or_forgets_the_task(
    sizes: list[int], first: int, last: int, wanted: bool
) -> None:
    log = started()
    for size in sizes:
        log.turn(a.CmdRun(command="c"), o.CmdOutput(content="x" * size, exit_code=0))
    if wanted:
        log.add(a.CondensationRequest())
    condensation = WindowCondenser(5000, first, last).condense(log.state)
    if condensation:
        assert 0 not in condensation.forgotten and 1 not in condensation.forgotten
        assert len(condensation.forgotten) % 3 == 0
        log.add(condensation)
        assert_pairs_are_complete(ConversationMemory().messages(log.state))
