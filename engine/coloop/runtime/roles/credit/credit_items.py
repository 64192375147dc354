"""From batches to what a learner is given: one sequence a row, with the advantages of each
algorithm, as often as it stands in the update.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.rows import ADVANTAGES, OF_OTHERS, advantages_of, balanced_counts
from coloop.data.arrays import Numbers
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.runtime.roles.credit.advantage_batch import AdvantageBatch
from coloop.runtime.roles.credit.credit_rows import group_keys
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.rows.texts import drawn_sequence, drawn_sequences
from coloop.spec.training import Balance

Counts = Mapping[str, float]
"""By row id, how often it stands in the update; a row that is missing stands as often as it was
drawn."""


def balanced(
    node: str, call: Call, section: Balance | None, batches: Sequence[AdvantageBatch]
) -> Counts:
    """As many rows for each group as the section says; a row that is not to be taught counts
    nothing there. Rows teach as much as the first algorithm that has an advantage for them says."""
    if section is None:
        return {}
    key_of = group_keys(node, call.context, (section.per,))
    sizes: dict[str, float] = {}
    groups: dict[Any, list[Row]] = {}
    for row, advantage in _advantages(batches):
        if row.id not in sizes:
            sizes[row.id] = float(np.abs(advantage).mean())
            groups.setdefault(key_of(row), []).append(row)
    found: dict[str, float] = {}
    for key, rows in groups.items():
        counts = balanced_counts(
            [round(row.drawn) for row in rows],
            [sizes[row.id] for row in rows],
            to=section.to,
            by=section.by,
            seed=derive_seed(call.context.seed, node, "balance", call.step, key),
        )
        found |= {row.id: float(count) for row, count in zip(rows, counts, strict=True)}
    return found


def items_of(batches: Sequence[AdvantageBatch], counts: Counts) -> tuple[TokenSequence, ...]:
    """What the learner gets; rows without an advantage teach nothing."""
    if len(batches) == 1 and batches[0].settings.off_policy is None:
        return _items_of_one(batches[0], counts)
    rows = {row.id: row for row, _ in _advantages(batches)}
    places = [{row.id: place for place, row in enumerate(one.rows)} for one in batches]
    counted = ((row, counts.get(row.id, row.drawn)) for row in rows.values())
    return tuple(_item(row, batches, places, count) for row, count in counted if count)


def _items_of_one(batch: AdvantageBatch, counts: Counts) -> tuple[TokenSequence, ...]:
    """All at once, where a row has nothing but its advantages."""
    given = zip(batch.rows, batch.groups, batch.output.advantages, strict=True)
    taught = [
        (row, group, one, count)
        for row, group, one in given
        if one is not None and (count := counts.get(row.id, row.drawn))
    ]
    return drawn_sequences(
        [row for row, *_ in taught],
        [row.tokens for row, *_ in taught if row.tokens is not None],
        group=[str(group) for _, group, *_ in taught],
        count=[count for *_, count in taught],
        advantages=[one for _, _, one, _ in taught],
        log_probs_reference=[batch.reference.get(row.id) for row, *_ in taught],
    )


def _item(
    row: Row, batches: Sequence[AdvantageBatch], places: Sequence[Mapping[str, int]], count: float
) -> TokenSequence:
    """One row, with the advantages of every algorithm that it teaches."""
    assert row.tokens is not None
    found: dict[str, float | Numbers] = {}
    group, is_of_others = "", False
    reference: Numbers | None = None
    for number, batch in enumerate(batches):
        place = places[number].get(row.id)
        advantage = None if place is None else batch.output.advantages[place]
        if place is None or advantage is None:
            continue
        found[advantages_of(number)] = advantage
        group = group or str(batch.groups[place])
        is_of_others = row.id in batch.scored.of_others
        reference = batch.reference.get(row.id)
    if any(batch.settings.off_policy is not None for batch in batches):
        found[OF_OTHERS] = float(is_of_others)
    if is_of_others:
        reference = np.zeros(len(row.tokens.token_ids), dtype=np.float32)
    own = found.pop(ADVANTAGES, None)
    return drawn_sequence(
        row.id,
        row.tokens,
        version=row.version,
        temperature=row.tokens.temperature,
        group=group,
        count=count,
        advantages=own,
        log_probs_reference=reference,
        numbers=found,
    )


def _advantages(batches: Sequence[AdvantageBatch]) -> list[tuple[Row, float | Numbers]]:
    return [
        (row, advantage)
        for batch in batches
        for row, advantage in zip(batch.rows, batch.output.advantages, strict=True)
        if advantage is not None
    ]
