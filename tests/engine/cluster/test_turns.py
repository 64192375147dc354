"""One call at a time in a pool, in the order in which they were asked."""

import threading

import pytest

from coloop.errors import StopRequested
from coloop.workers.cluster.ranks import Turns

PATIENCE = 60.0


def test_who_asks_again_and_again_lets_others_in_between() -> None:
    """New weights come in between the calls of a stage that goes on writing."""
    turns, order = Turns(["main"]), []
    inside, is_waiting = threading.Event(), threading.Event()

    def other() -> None:
        assert inside.wait(PATIENCE)
        is_waiting.set()
        with turns.turn("main", None):
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with turns.turn("main", None):
        inside.set()
        assert is_waiting.wait(PATIENCE)
        while len(turns._asked["main"]) < 2:  # it is about to stand behind
            is_waiting.wait(0)
    with turns.turn("main", None):
        order.append("again")
    thread.join()

    assert order == ["other", "again"]


def test_who_gives_up_leaves_the_queue() -> None:
    turns = Turns(["main", "other"])

    with turns.turn("main", None):
        with pytest.raises(StopRequested, match="main"), turns.turn("main", lambda poll: True):
            raise AssertionError("it is not its turn")
        with turns.turn("other", None):
            pass

    with turns.turn("main", lambda poll: True):
        pass
    with pytest.raises(KeyError), turns.turn("nobody", None):
        pass
