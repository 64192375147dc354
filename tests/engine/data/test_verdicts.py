"""What `read` finds in the text of a judge."""

from typing import Any

import pytest

from coloop.data.prompting import numbers_in, words_in
from coloop.spec.reading import Read

WORDS = {"right": 1, "wrong": -1, "correct": 1, "incorrect": 0}
TANGO = {
    "verdict": "final: (correct|incorrect)",
    "step_verdicts": r"step (\d+): (right|wrong)",
    "values": WORDS,
    "step_scale": "per_step_count",
}


def read(**fields: Any) -> Read:
    return Read.model_validate(fields)


def test_the_last_verdict_counts() -> None:
    text = "final: correct, no: final: incorrect"

    assert numbers_in(text, read(**TANGO)).whole == 0.0


def test_a_word_that_is_worth_nothing_is_no_verdict() -> None:
    said = numbers_in("verdict: maybe", read(verdict=r"verdict: (\w+)", values={"yes": 1}))

    assert said.whole is None
    assert not said.steps


def test_steps_are_counted_from_one_and_the_last_word_about_a_step_counts() -> None:
    text = "step 1: right\nstep 2: right\nstep 2: wrong"

    said = numbers_in(text, read(**TANGO | {"step_scale": "none"}), 2)

    assert said.steps == {0: 1.0, 1: -1.0}
    assert said.whole is None


def test_a_step_pays_its_share_of_the_judged_steps() -> None:
    said = numbers_in("step 1: right\nstep 4: wrong\nfinal: correct", read(**TANGO), 4)

    assert said.steps == {0: 0.25, 3: -0.25}  # 1/K and -1/K of K = 4 steps, not of 2 verdicts
    assert said.whole == 1.0  # the verdict is no step


@pytest.mark.parametrize("number", [0, 3, 99])
def test_words_about_steps_that_are_not_there_are_passed_over(number: int) -> None:
    assert numbers_in(f"step {number}: right", read(**TANGO), 2).steps == {}


def test_without_known_steps_those_are_counted_that_have_a_word() -> None:
    said = numbers_in("step 1: right\nstep 2: wrong", read(**TANGO))

    assert said.steps == {0: 0.5, 1: -0.5}


@pytest.mark.parametrize(
    ("text", "number"), [("score: 7", 7.0), ("score: 7 score: 8", 8.0), ("score: x", None)]
)
def test_a_number_is_the_score(text: str, number: float | None) -> None:
    assert numbers_in(text, read(number=r"score: (\S+)")).whole == number


@pytest.mark.parametrize(("said", "score"), [(1, 0.0), (4, 1 / 3), (10, 1.0), (12, 1.0)])
def test_a_scale_brings_numbers_onto_0_to_1(said: int, score: float) -> None:
    found = numbers_in(f"score: {said}", read(number=r"score: (\d+)", scale=(1, 10)))

    assert found.whole == pytest.approx(score)


def test_numbers_of_several_things_stand_at_their_places() -> None:
    found = numbers_in("score 1: 7\nscore 3: 2", read(numbers=r"score (\d+): (\d+)"))

    assert found.things == {0: 7.0, 2: 2.0}


def test_the_place_of_a_word_is_known_where_its_chance_is_asked_for() -> None:
    by_chance = read(verdict=r"\[\[(A|B)\]\]", score="probability", labels=["A", "B"])

    words = words_in("[[B]] or [[A]]", by_chance)

    assert words.whole is not None
    assert (words.whole.text, words.whole.start) == ("A", 11)


def test_without_a_pattern_the_last_label_is_the_verdict() -> None:
    by_chance = read(score="probability", labels=["no", "not sure"])

    words = words_in("no, I am not sure", by_chance)

    assert words.whole is not None
    assert words.whole.text == "not sure"
