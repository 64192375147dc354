"""Monte Carlo: the chance of a step is the share of right texts among completions of the prefix up
to its end. The chance of the last step is the score of the text from `outcome`.
"""

from collections.abc import Sequence

from coloop.data.tables import Row, Tokens
from coloop.runtime.roles.searching.tree_expansion import Method, TreeExpansion
from coloop.runtime.roles.searching.trees import (
    Chances,
    ExpansionRequest,
    Findings,
    Found,
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
    counts_rollouts = True

    def label(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode
    ) -> list[Labelled]:
        paths = expansion.texts(rows)
        counts = counts_of(rows, paths, section)
        asked = list(zip(rows, paths, counts, strict=True))
        is_relative = isinstance(section.labels, RelativeProgress)
        before = self._before(asked, expansion) if is_relative else {}
        found = expansion.grow_rows(
            rows, (monte_carlo(path, count, section.stop_at_zero) for _, path, count in asked)
        )
        return [
            Labelled(
                row=row,
                score=path.score,
                chances=own[0].chances,
                before=before.get(group_of(row)),
            )
            for (row, path, _), own in zip(asked, found, strict=True)
        ]

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        texts = expansion.texts_per_prompt
        found = expansion.grow_rows(rows, (completions("root", texts) for _ in rows))
        written = [text.row for text in expansion.labelled(rows, found, place)]
        return Findings(rows=self.label(written, expansion, section))

    def _before(
        self, asked: Sequence[tuple[Row, Path, int]], expansion: TreeExpansion
    ) -> dict[str, float | None]:
        first: dict[str, tuple[Row, Path, int]] = {}
        for row, path, count in asked:
            if count:
                first.setdefault(group_of(row), (row, path, count))
        texts = expansion.grow(
            [
                Root(
                    row=row,
                    key=f"{group} before",
                    search=completions("before", count, path.tokens),
                )
                for group, (row, path, count) in first.items()
            ]
        )
        return {
            group: chance_of([text.path for text in texts[f"{group} before"]]) for group in first
        }


def monte_carlo(text: Path, count: int, stop_at_zero: bool) -> Search:
    """The search of one text: the chances of its steps. With `stop_at_zero`, steps are completed
    one by one, up to the first with chance 0."""
    chances: Chances = {}
    if not count:
        return [Found(path=text)]
    waves = [(end,) for end in text.inner] if stop_at_zero else [text.inner] if text.inner else []
    for ends in waves:
        grown = yield [text.up_to(end, count) for end in ends]
        for end, paths in zip(ends, grown, strict=True):
            chance = chance_of(paths or ())
            if chance is not None:
                chances[end] = chance
        if None in grown or (stop_at_zero and chances.get(ends[0]) == 0):
            return [Found(path=text, chances=chances)]
    if text.ends and text.score is not None:
        chances[text.ends[-1]] = text.score
    return [Found(path=text, chances=chances)]


def completions(name: str, count: int, text: Tokens | None = None) -> Search:
    """A search that only samples completions of a prompt: that of `text`, or None: of the row."""
    [paths] = yield [ExpansionRequest(name=name, count=count, text=text)]
    return [Found(path=path) for path in paths or ()]
