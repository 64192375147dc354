"""Learning which of a few labels to say (`label_ce`): by a head with a class for each, or in words
behind a judge's prompt.

What is learned of a text stands under `LABEL`: of two labels the chance of the first, of more the
place of the right one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from coloop.algorithms.batch import Choice, Text, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.labels import LABEL
from coloop.data.tables import Row
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Context, Input
from coloop.runtime.roles.rows.texts import SIDES, as_pair, as_sequence
from coloop.runtime.roles.verifiers.taught import judges_in_words, prompts_about
from coloop.runtime.roles.verifiers.turning import SWAPPED
from coloop.spec.algorithm import Algorithm, LabelCrossEntropy
from coloop.spec.heads import label_words
from coloop.spec.nodes import Node

TWO = 2


def chooses(entries: Sequence[Algorithm]) -> LabelCrossEntropy | None:
    return next((one for one in entries if isinstance(one, LabelCrossEntropy)), None)


def chosen_labels(
    node: str, given: Input, entry: LabelCrossEntropy, context: Context, step: int
) -> list[Unit | None]:
    """Of each labelled row what is learned of it; None where nobody labels it."""
    scores = given.table.scores or {}
    rows = [row for row in given.table.rows if scores.get(row.id) is not None and not row.is_greedy]
    targets = {row.id: _target(row, scores[row.id], node, entry, context) for row in rows}
    texts = {
        row.id: text for row, text in zip(rows, _texts(node, rows, context, step), strict=True)
    }
    return [
        replace(texts[row.id], numbers={LABEL: targets[row.id]}) if row.id in texts else None
        for row in given.table.rows
    ]


def chosen_sides(node: str, given: Input, context: Context, step: int) -> list[Unit]:
    """Of each pair the label of the better side: as it would be shown, or of each side alone."""
    rows = given.table.rows
    if not judges_in_words(context.spec, node):
        return [unit for row in rows for unit in _each_side(row)]
    found: list[Unit] = []
    for row_prompt in prompts_about(node, rows, context, step, compares=True):
        chance = _chance(row_prompt.row)
        text = _asked(node, row_prompt.row.id, row_prompt.prompt, context)
        turned = 1 - chance if row_prompt.columns.get(SWAPPED) else chance
        found.append(
            replace(text, id=f"{row_prompt.row.id}/{row_prompt.number}", numbers={LABEL: turned})
        )
    return found


def _each_side(row: Row) -> list[Unit]:
    pair, chance = as_pair(row), _chance(row)
    return [
        replace(text, id=f"{row.id}/{side}", numbers={LABEL: label})
        for side, text, label in zip(
            SIDES, (pair.chosen, pair.rejected), (chance, 1 - chance), strict=True
        )
    ]


def _texts(node: str, rows: Sequence[Row], context: Context, step: int) -> list[TokenSequence]:
    if judges_in_words(context.spec, node):
        row_prompts = prompts_about(node, rows, context, step, compares=False)
        return [
            _asked(node, row_prompt.row.id, row_prompt.prompt, context)
            for row_prompt in row_prompts
        ]
    return [as_sequence(row) for row in rows]


def _asked(node: str, name: str, prompt: Any, context: Context) -> TokenSequence:
    words = label_words(context.spec, node) or ()
    choice = Choice(words=words, field="read.labels")
    return TokenSequence(id=name, text=Text(prompt=prompt, target=""), choice=choice)


def _chance(row: Row) -> float:
    """That `chosen` is the better side."""
    given = row.columns.get("probability")
    return float(given) if isinstance(given, float | int) else 1.0


def _target(row: Row, label: Any, node: str, entry: LabelCrossEntropy, context: Context) -> float:
    """What is learned of a label; raises `DataError` where it is none of the classes'."""
    words = label_words(context.spec, node) or ()
    worth = _worth(context.spec.nodes[node], words)
    if len(words) == TWO and not isinstance(label, dict):
        chance = (label - worth[1]) / (worth[0] - worth[1])
        if chance in (0.0, 1.0) or (entry.soft and 0.0 <= chance <= 1.0):
            return float(chance)
    elif not isinstance(label, dict) and label in worth:
        return float(worth.index(label))
    known = ", ".join(f"{word!r} ({number:g})" for word, number in zip(words, worth, strict=True))
    raise DataError(
        f"row {row.id} has the label {label}, but `{node}.labels` learns the classes {known}; set "
        "the value of each in `read.values`"
        + ("" if entry.soft else ", or set `soft` for labels between two"),
        node,
        "read.values",
    )


def _worth(section: Node, words: Sequence[str]) -> list[float]:
    """The label that stands for each class: of two 1 and 0, of more their places, unless `values`
    says it."""
    values = getattr(getattr(section, "read", None), "values", None) or {}
    own = [1.0, 0.0] if len(words) == TWO else [float(place) for place in range(len(words))]
    return [float(values.get(word, number)) for word, number in zip(words, own, strict=True)]
