"""How likely a judge's model takes its first label, among its labels alone."""

from collections.abc import Sequence

import numpy as np

from coloop.algorithms.batch import Choice, Text
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.tables import Row
from coloop.runtime.roles.generation.writer import RowPrompt
from coloop.runtime.roles.protocol import Context
from coloop.runtime.roles.rows.texts import as_read
from coloop.spec.nodes import VerifierNode
from coloop.workers.messages import TooLong

FIELD = "read.labels"

Place = tuple[Row, int]
"""A text that was written, and the characters of it behind which a label stands."""


def asked(node: str, row_prompts: Sequence[RowPrompt], context: Context) -> list[float | TooLong]:
    """The chance of the first label right behind each prompt."""
    labels = _labels(node, context)
    texts = [
        TokenSequence(
            id=row_prompt.row.id,
            text=Text(prompt=row_prompt.prompt, target=""),
            choice=Choice(words=labels, field=FIELD),
        )
        for row_prompt in row_prompts
    ]
    return _chances(node, texts, context)


def at_places(node: str, places: Sequence[Place], context: Context) -> list[float | TooLong]:
    """The chance of the first label at each place, where one of the labels was written."""
    labels = _labels(node, context)
    texts = [
        as_read(row, choice=Choice(words=labels, field=FIELD, at=start)) for row, start in places
    ]
    return _chances(node, texts, context)


def first_share(log_probs: Numbers) -> float:
    """p₀ / Σ p, of the log-probs of all."""
    wide = np.asarray(log_probs, dtype=np.float64)
    shares = np.exp(wide - wide.max())
    return float(shares[0] / shares.sum())


def _chances(node: str, texts: Sequence[TokenSequence], context: Context) -> list[float | TooLong]:
    if not texts:
        return []
    said = context.hosts.score(context.groups[node], node, texts, 1.0, "choices")
    return [one if isinstance(one, TooLong) else first_share(one) for one in said]


def _labels(node: str, context: Context) -> tuple[str, ...]:
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return section.read.labels or ()
