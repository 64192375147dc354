"""Rows that two datasets share. Equal: the same text but for case and blanks. Nearly equal: most
runs of five words are the same."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from coloop.data.sources import Source
from coloop.spec.graph import LoopSpec
from coloop_server.previews.inside.sources import opened, texts_of
from coloop_server.previews.inside.walk import NotHere
from coloop_server.previews.schemas import MAX_MEASURED, AskOverlap, Job, Overlap, OverlapPair

WORDS = 5
"""Words per shingle."""
LEAST_SHINGLES = 4
"""Shorter texts are only compared for equality."""
NEAR = 0.8
"""Share of common shingles from which texts are nearly equal."""
COMMON = 64
"""Shingles in more training rows than this are ignored."""
MOST_PAIRS = 50
MOST_TEXT = 400
DEFAULTS = ("prompt", "target", "chosen", "text", "question")


def overlap_of(job: Job, spec: LoopSpec) -> Overlap:
    asked = job.asked
    assert isinstance(asked, AskOverlap)
    root = Path(job.root)
    train, test = (opened(spec, node, root) for node in (asked.train, asked.test))
    columns = asked.columns or [_default(train, test, asked)]
    for node, source in ((asked.train, train), (asked.test, test)):
        missing = [name for name in columns if name not in source.columns]
        if missing:
            raise NotHere(
                f"the rows of `{node}` have no column `{missing[0]}`; they have "
                f"{', '.join(source.columns)}"
            )
    left, right = (_texts(source, columns) for source in (train, test))
    return compared(left, right, columns, (len(train), len(test)))


def _default(train: Source, test: Source, asked: AskOverlap) -> str:
    both = [name for name in train.columns if name in test.columns]
    column = next((name for name in DEFAULTS if name in both), next(iter(both), None))
    if column is None:
        raise NotHere(f"`{asked.train}` and `{asked.test}` have no column in common")
    return column


def _texts(source: Source, columns: Sequence[str]) -> list[str]:
    rows = (source.row(index) for index in range(min(len(source), MAX_MEASURED)))
    return [texts_of(row, columns) for row in rows]


def compared(
    train: Sequence[str], test: Sequence[str], columns: Sequence[str], sizes: tuple[int, int]
) -> Overlap:
    plain, asked = [*map(normal, train)], [*map(normal, test)]
    places: dict[str, int] = {}
    for row, text in enumerate(plain):
        places.setdefault(text, row)
    equal = [(places[text], row, 1.0) for row, text in enumerate(asked) if text in places]
    rest = {row: text for row, text in enumerate(asked) if text not in places}
    near = nearly_equal(plain, rest)
    shown = [*equal, *near][:MOST_PAIRS]
    return Overlap(
        columns=[*columns],
        train_rows=len(train),
        test_rows=len(test),
        read_all=(len(train), len(test)) == sizes,
        train_twice=len(plain) - len(set(plain)),
        test_twice=len(asked) - len(set(asked)),
        leaked=len(equal),
        near=len(near),
        pairs=[
            OverlapPair(
                train=left,
                test=right,
                similarity=share,
                text=train[left][:MOST_TEXT],
                other=test[right][:MOST_TEXT],
            )
            for left, right, share in shown
        ],
    )


def normal(text: str) -> str:
    """A text with normalized case and blanks."""
    return " ".join(text.casefold().split())


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.split()
    runs = zip(*(islice(words, start, None) for start in range(WORDS)), strict=False)
    return frozenset(runs)


def nearly_equal(train: Sequence[str], test: Mapping[int, str]) -> list[tuple[int, int, float]]:
    """(index in train, index in test, share of common shingles), with the closest row of each."""
    of_test = {
        row: runs for row, text in test.items() if len(runs := shingles(text)) >= LEAST_SHINGLES
    }
    wanted = frozenset(run for runs in of_test.values() for run in runs)
    holders: dict[Any, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for row, text in enumerate(train):
        runs = shingles(text)
        sizes[row] = len(runs)
        for run in runs & wanted:
            holders[run].append(row)
    near = []
    for row, runs in of_test.items():
        shared = Counter(
            other for run in runs if len(holders[run]) <= COMMON for other in holders[run]
        )
        best = max(
            (
                (count / (len(runs) + sizes[other] - count), other)
                for other, count in shared.items()
            ),
            default=(0.0, -1),
        )
        if best[0] >= NEAR:
            near.append((best[1], row, best[0]))
    return near
