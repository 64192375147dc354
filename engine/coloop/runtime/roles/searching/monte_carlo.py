"""Monte Carlo: the chance of a step is the share of right texts among completions of all that is
written up to its end. The last step is the text itself: its chance is what `outcome` says of it."""

from collections.abc import Iterator, Sequence

from coloop.data.tables import Row
from coloop.runtime.roles.searching.tree_expansion import Method, TreeExpansion
from coloop.runtime.roles.searching.trees import (
    Chances,
    ExpansionRequest,
    Findings,
    Found,
    Grown,
    Labelled,
    Path,
    Places,
    Root,
    Search,
    chance_of,
    counts_of,
    group_of,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import RelativeProgress


class MonteCarlo(Method):
    """Labels steps by the share of correct completions from each of them."""

    counts_rollouts = True

    def label(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode
    ) -> list[Labelled]:
        paths = expansion.texts(rows)
        counts = counts_of(rows, paths, section)
        asked = list(zip(rows, paths, counts, strict=True))
        is_relative = isinstance(section.labels, RelativeProgress)
        before = self._before(asked, expansion) if is_relative else {}
        found = expansion.grow(
            [
                Root(row=row, key=row.id, search=monte_carlo(path, count, section.stop_at_zero))
                for row, path, count in asked
                if count
            ]
        )
        return [
            Labelled(
                row=row,
                score=path.score,
                chances=found[row.id][0].chances if count else {},
                before=before.get(group_of(row)),
            )
            for row, path, count in asked
        ]

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        texts = expansion.texts_per_prompt
        roots = [Root(row=row, key=row.id, search=of_prompt(texts)) for row in rows]
        found = expansion.grow(roots)
        written = [
            expansion.row(row, one.path, place(number))
            for row in rows
            for number, one in enumerate(found[row.id])
        ]
        return Findings(rows=self.label(written, expansion, section))

    def _before(
        self, asked: Sequence[tuple[Row, Path, int]], expansion: TreeExpansion
    ) -> dict[str, float | None]:
        first: dict[str, tuple[Row, Path, int]] = {}
        for row, path, count in asked:
            if count:
                first.setdefault(group_of(row), (row, path, count))
        found = expansion.grow(
            [
                Root(row=row, key=f"{group} before", search=before(path, count))
                for group, (row, path, count) in first.items()
            ]
        )
        return {group: chance_of([one.path for one in found[f"{group} before"]]) for group in first}


def monte_carlo(text: Path, count: int, stop_at_zero: bool) -> Search:
    """Labels of one text.

    Args:
        stop_at_zero: steps are completed one after another, up to the first without a chance.
    """
    chances: Chances = {}
    for ends in _waves(text, one_by_one=stop_at_zero):
        grown = yield [text.up_to(end, count) for end in ends]
        _note(chances, ends, grown)
        if None in grown or (stop_at_zero and chances.get(ends[0]) == 0):
            return [Found(path=text, chances=chances)]
    if text.ends and text.score is not None:
        chances[text.ends[-1]] = text.score
    return [Found(path=text, chances=chances)]


def before(text: Path, count: int) -> Search:
    [paths] = yield [ExpansionRequest(name="before", count=count, text=text.tokens)]
    return [Found(path=path) for path in paths or ()]


def of_prompt(count: int) -> Search:
    [paths] = yield [ExpansionRequest(name="root", count=count)]
    return [Found(path=path) for path in paths or ()]


def _waves(text: Path, *, one_by_one: bool) -> Iterator[tuple[int, ...]]:
    if one_by_one:
        yield from ((end,) for end in text.inner)
    elif text.inner:
        yield text.inner


def _note(chances: Chances, ends: Sequence[int], grown: Sequence[Grown]) -> None:
    for end, paths in zip(ends, grown, strict=True):
        chance = chance_of(paths or ())
        if chance is not None:
            chances[end] = chance
