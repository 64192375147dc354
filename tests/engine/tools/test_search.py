"""BM25 over documents: the numbers, the order, and what cannot be searched."""

import math

import pytest

from coloop.data.tools.builtin import Index, Search, texts_of, words_of
from coloop.data.tools.protocol import Caller, ToolFailure
from coloop.errors import DataError

TEXTS = [
    "the cat sat on the mat",
    "a dog and a cat",
    "birds sing",
    "the dog barks at the dog next door",
]


def bm25(query: str, text: str) -> float:
    """By the formula, word by word: idf · tf / (tf + k1 (1 − b + b · length / mean))."""
    lengths = [len(words_of(one)) for one in TEXTS]
    mean = sum(lengths) / len(lengths)
    total = 0.0
    for word in words_of(query):
        containing = sum(word in words_of(one) for one in TEXTS)
        tf = words_of(text).count(word)
        idf = math.log(1 + (len(TEXTS) - containing + 0.5) / (containing + 0.5))
        total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(words_of(text)) / mean))
    return total


@pytest.mark.parametrize("query", ["dog", "the cat", "DOG barks", "birds dog cat"])
def test_documents_are_found_by_bm25(query: str) -> None:
    scores = [bm25(query, text) for text in TEXTS]
    order = sorted(range(len(TEXTS)), key=lambda place: (-scores[place], place))

    found = Index(TEXTS).best(query, 3)

    assert found == [TEXTS[place] for place in order if scores[place] > 0][:3]


def test_of_equally_good_documents_the_earlier_stands_first() -> None:
    index = Index(["same words", "other", "same words", "same words"])

    assert index.best("words", 2) == ["same words"] * 2
    assert Index(["a b", "b a"]).best("a", 2) == ["a b", "b a"]


def test_nothing_is_found_where_no_word_is_known() -> None:
    session = Search(Index(TEXTS), 2).open(Caller(columns={}, seed=0, shared_seed=0))

    assert session.answer({"query": "zebra"}, lambda: None).value == "nothing found"
    assert session.answer({"query": "sing"}, lambda: None).value == "birds sing"
    with pytest.raises(ToolFailure, match="query is empty"):
        session.answer({"query": "  "}, lambda: None)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "the 0 documents of"),
        ([{"text": " ... "}], "the 1 documents of"),
        ([{"title": "x"}], "no text in column `text`: it is not there; it has title"),
        ([{"text": 3}], "it is a int"),
    ],
)
def test_documents_without_words_are_refused(rows: list[dict[str, object]], reason: str) -> None:
    with pytest.raises(DataError, match=reason) as refused:
        texts_of(rows, "text", "index", "library")

    assert refused.value.node == "index"
