"""In which language a text is written, by py3langid: a model of letter sequences in 97 languages.

Short texts tell little, so sentences are joined to pieces of some length before they are asked
about; a text that mixes languages has pieces of several. Of a text of a few letters nothing is
told: it has no score.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from coloop.data.rewards.scoring import Score, ScoringRow, text_of
from coloop.spec import builtins as options

WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Characters of Japanese, Chinese and Korean, which stand for syllables and words: a few of them in
another text are another language, and are asked about apart from it."""
SENTENCE: Final = re.compile(r"[^.!?\n\u3002]+[.!?\n\u3002]*")
LEAST_LETTERS: Final = 40
"""Of a piece."""
LEAST_TOLD: Final = 20
"""Letters of a text: of 4858 English sentences and their beginnings with 20 to 24 letters 97% are
told to be English, of those with 5 to 9 letters 58%."""
COMMAND: Final = re.compile(r"\\[a-zA-Z]+")
"""Of LaTeX, in no language."""
WIDE_WEIGHT: Final = 4
"""Letters that a wide character counts for."""
NO_LANGUAGE: Final = "zxx"
"""What the model says of numbers and code."""


def language(rows: Sequence[ScoringRow], given: options.Language) -> list[Score]:
    """The share of a text's letters that stand in pieces of the language; few letters: no score."""
    return [
        None if (text := text_of(row)) is None else share_of(text, given.language) for row in rows
    ]


def share_of(text: str, wanted: str) -> float | None:
    """Between 0 and 1; None of a text with fewer letters than tell anything."""
    text = COMMAND.sub(" ", text)
    if _letters(text) < LEAST_TOLD:
        return None
    wide = "".join(WIDE.findall(text))
    pieces = [*pieces_of(WIDE.sub(" ", text)), *pieces_of(wide)]
    said = [(_letters(piece), language_of(piece)) for piece in pieces if _letters(piece)]
    every = sum(count for count, name in said if name != NO_LANGUAGE)
    return sum(count for count, name in said if name == wanted) / every if every else None


def pieces_of(text: str) -> list[str]:
    """Sentences, each joined with those after it until it is long enough; a short rest belongs to
    the last piece."""
    pieces, open_piece, letters = [], "", 0
    for sentence in SENTENCE.findall(text):
        open_piece += sentence
        letters += _letters(sentence)
        if letters >= LEAST_LETTERS:
            pieces.append(open_piece)
            open_piece, letters = "", 0
    return [*pieces[:-1], pieces[-1] + open_piece] if pieces else [open_piece]


def language_of(text: str) -> str:
    """The likeliest language, as a code of two letters (ISO 639-1)."""
    return str(_identifier().classify(text)[0])


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text)) + (WIDE_WEIGHT - 1) * len(WIDE.findall(text))


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE)
