"""In which language a text is written."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.rewards.texts import _identifier, pieces_of
from coloop.data.tables import Score
from coloop.spec.builtins import BuiltinSource, LanguageCode

ENGLISH = "She sells the remainder at the farmers' market daily for two dollars per fresh egg."
GERMAN = "Den Rest verkauft sie jeden Tag auf dem Markt, und zwar für zwei Dollar das Stück."
CHINESE = "她每天在农贸市场以每个两美元的价格出售剩下的鸡蛋, 我们需要计算她每天赚多少钱"


def score(text: str | None, language: str) -> Score:
    source: Any = TypeAdapter(BuiltinSource).validate_python(
        {"type": "builtin", "name": "language", "language": language}
    )
    return score_builtin(source, [ScoringRow(columns={"completion": text})], node="mine").scores[0]


@pytest.mark.parametrize(("language", "text"), [("en", ENGLISH), ("de", GERMAN), ("zh", CHINESE)])
def test_a_text_of_one_language_is_of_it_and_of_no_other(language: str, text: str) -> None:
    assert score(text, language) == 1.0
    assert score(text, "fr") == 0.0


def test_a_text_that_mixes_languages_counts_by_its_letters() -> None:
    english, german = (sum(map(str.isalpha, text)) for text in (ENGLISH, GERMAN))

    assert score(f"{ENGLISH} {GERMAN}", "en") == pytest.approx(english / (english + german))


def test_a_few_characters_of_another_script_cost_their_share() -> None:
    share = score(ENGLISH.replace("daily", "\u6bcf\u5929\u90fd"), "en")

    assert isinstance(share, float)
    assert 0.5 < share < 1.0


@pytest.mark.parametrize("text", ["", "  \n", "3 + 4 = 7", "\U0001f600", None])
def test_a_text_without_letters_has_no_language(text: str | None) -> None:
    assert score(text, "en") is None


@pytest.mark.parametrize("text", ["yes", "No.", "okay", "Hi", r"\boxed{5}", "Ja.", "\u662f\u7684"])
def test_a_text_of_a_few_letters_is_in_no_language(text: str) -> None:
    assert score(text, "en") is None


def test_commands_of_latex_are_in_no_language() -> None:
    assert score(r"\boxed{\frac{\sqrt{\alpha}}{\displaystyle\operatorname{7}}}", "en") is None
    assert score(rf"{GERMAN} \frac{{1}}{{2}} \left( \sqrt{{2}} \right)", "de") == 1.0


def test_short_sentences_are_joined_until_they_tell_something() -> None:
    assert pieces_of("Yes. No. Maybe.") == ["Yes. No. Maybe."]
    assert pieces_of(f"{ENGLISH}\nYes.") == [f"{ENGLISH}\nYes."]
    assert pieces_of(f"{ENGLISH}\n{GERMAN}") == [f"{ENGLISH}\n", GERMAN]


def test_the_languages_of_the_form_are_those_of_the_model() -> None:
    assert set(get_args(LanguageCode)) <= {str(one) for one in _identifier().labels}
