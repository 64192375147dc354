"""Turns between a policy and its tools: how many, what counts as one, and what ends a text."""

from typing import Any

import pytest

from coloop.data.tools.protocol import Answered, Forgetful, ToolFailure
from coloop.runtime.roles.generation.conversations import (
    Callee,
    Conversation,
    ConversationResult,
    tool_measures,
    turn_measures,
)
from coloop.spec.nodes import ToolNode
from coloop.spec.rollout import Rollout, Turns
from coloop.workers.messages import Pause, Silence


class Echo(Forgetful):
    """Says what it is told, fails at `bad`, and ends the text at `end`."""

    def answer(self, arguments: Any, tick: Any) -> Answered:
        del tick
        [said] = arguments.values()
        if said == "bad":
            raise ToolFailure("it is bad")
        return Answered(value=said, is_last=said == "end")

    def earned(self) -> dict[str, float]:
        return {"reward": 1.5}


CODE = {"type": "python", "call": "<(?P<code>[^>]*)>", "result": "[{{ value }}]"}
WORLD = {"type": "environment", "name": "proof"}


def conversation(tools: dict[str, Any] | None = None, stop: Any = (), **turns: Any) -> Conversation:
    callees = []
    for name, fields in (tools or {"box": CODE}).items():
        section = ToolNode.model_validate({"kind": "tool", **fields})
        callees.append(Callee(name=name, section=section, answers=name, words=section, open=Echo))
    return Conversation(callees, Turns(**turns), Rollout(stop=stop), lambda: None)


def pause(text: str, end: Any = "call") -> Pause:
    return Pause(place=0, k=0, text=text, end=end)


def test_a_call_is_answered_and_counted() -> None:
    talk = conversation()

    assert talk.answer(pause("I ask <one>")) == "[one]"
    assert talk.answer(pause("and <two>")) == "[two]"

    told = talk.told()
    assert told.turns == 3
    assert told.columns["tool_calls"] == ["<one>", "<two>"]
    assert told.columns["tool_outputs"] == ["[one]", "[two]"]
    assert told.work["box"].calls == 2


def test_a_turn_goes_on_where_it_paused_for_no_call() -> None:
    talk = conversation()

    assert talk.answer(pause("nothing here >")) is Silence.GO_ON
    assert talk.told().turns == 1


def test_a_failure_is_what_the_policy_reads() -> None:
    talk = conversation()

    assert talk.answer(pause("<bad>")) == "[error: it is bad]"
    assert talk.told().work["box"].errors == 1


def test_a_failure_is_read_plainly_where_the_template_cannot_hold_it() -> None:
    talk = conversation({"box": {**CODE, "result": "{{ value / 2 }}"}})

    assert talk.answer(pause("<1>")).startswith("error: the answer cannot be written")


def test_after_the_last_turn_it_writes_once_more_without_tools() -> None:
    talk = conversation(max=2)

    assert [talk.answer(pause(f"<{n}>")) for n in range(2)] == ["[0]", "[1]"]
    assert talk.answer(pause("<3>")) is Silence.GO_ON
    assert talk.answer(pause("", "end")) is None

    told = talk.told()
    assert (told.turns, len(told.calls), told.was_cut) == (3, 2, False)


def test_or_is_cut_there() -> None:
    talk = conversation(max=2, last="cut")

    assert talk.answer(pause("<0>")) == "[0]"
    assert talk.answer(pause("<1>")) is Silence.CUT

    told = talk.told()
    assert (told.turns, told.was_cut) == (2, True)
    assert told.columns["tool_outputs"] == ["[0]", "[1]"]


@pytest.mark.parametrize(
    ("end", "stop", "said"),
    [
        ("end", ("</answer>",), "act"),
        ("length", ("</answer>",), "act"),
        ("length", (), "act"),
        ("end", (), None),
        ("stop", ("</answer>",), None),
        ("call", (), Silence.GO_ON),
    ],
)
def test_a_turn_without_a_call_or_an_end_is_invalid(end: str, stop: Any, said: Any) -> None:
    talk = conversation(invalid_action="act", stop=stop)

    assert talk.answer(pause("nothing", end)) == said
    assert talk.told().invalid == (said == "act")


def test_without_a_word_for_it_an_invalid_turn_is_the_end() -> None:
    assert conversation(stop="</answer>").answer(pause("nothing", "length")) is None


def test_an_environment_hears_every_turn_and_ends_the_text() -> None:
    talk = conversation({"desk": WORLD})

    assert talk.answer(pause("one", "end")) == "one"
    assert talk.answer(pause("two", "length")) == "two"
    assert talk.answer(pause("end", "end")) is None

    told = talk.told()
    assert told.turns == 3
    assert told.earned == {"desk.reward": 1.5, "desk.score": 0.0}


def test_an_environment_that_never_ends_is_cut_whatever_comes_after_the_last_turn() -> None:
    talk = conversation({"desk": WORLD}, max=2)

    assert talk.answer(pause("one", "end")) == "one"
    assert talk.answer(pause("two", "end")) is Silence.CUT
    assert talk.told().was_cut


def test_of_two_calls_the_one_that_ends_last_is_answered() -> None:
    other = {"type": "calculator", "call": "{(?P<expression>[^}]*)}"}
    talk = conversation({"box": CODE, "sum": other})

    assert talk.answer(pause("<one> {two}")) == "two"
    assert talk.answer(pause("{two} <one>")) == "[one]"


def test_metrics_are_means_over_texts() -> None:
    talk = conversation()
    talk.answer(pause("<one>"))
    talk.answer(pause("<bad>"))
    told = [talk.told(), ConversationResult()]

    assert turn_measures(told) == {"turns/mean": 2.0, "turns/invalid": 0.0, "turns/cut": 0.0}
    measures = tool_measures(told)["box"]
    assert (measures["tool/calls"], measures["tool/errors"]) == (1.0, 0.5)
