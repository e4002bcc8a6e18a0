"""Our own login is asked for once, and no delivery waits for it for long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from resolver.server.login import OwnLogin


class Asked:
    """What answers, after a while; counts how often it was asked."""

    def __init__(self, *answers: str, seconds: float = 0.0) -> None:
        self.answers, self.seconds, self.times = list(answers), seconds, 0
        self.done = threading.Event()

    def __call__(self) -> str:
        self.times += 1
        time.sleep(self.seconds)
        answer = self.answers.pop(0)
        self.done.set()
        return answer


def test_it_is_asked_once_however_many_want_it() -> None:
    ask, login = Asked("our-bot", seconds=0.3), OwnLogin()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: login.get(ask), range(8))) == {"our-bot"}
    assert (login.get(ask), ask.times) == ("our-bot", 1)


def test_after_no_answer_it_is_asked_again_only_later() -> None:
    ask, login = Asked("", "our-bot"), OwnLogin(again=0.5)
    assert (login.get(ask), login.get(ask), ask.times) == ("", "", 1)
    time.sleep(0.6)
    assert (login.get(ask), ask.times) == ("our-bot", 2)


def test_a_late_answer_is_waited_for_once_and_is_known_when_it_comes() -> None:
    ask, login = Asked("our-bot", seconds=1.0), OwnLogin(waits=0.2)
    begun = time.monotonic()
    assert login.get(ask) == ""
    assert [login.get(ask) for _ in range(20)] == [""] * 20
    assert time.monotonic() - begun < 0.9
    assert ask.done.wait(10)
    time.sleep(0.1)
    assert (login.get(ask), ask.times) == ("our-bot", 1)
