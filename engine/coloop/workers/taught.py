"""Rows as a loss saw them, with the text of each token: what people look at beside a sample."""

from collections.abc import Callable, Sequence

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import numbers_of
from coloop.workers.encoder import Encoder
from coloop.workers.messages import TaughtRow
from coloop.workers.training import Seen, TrainBatch


def taught_rows(
    loads: Sequence[TrainBatch], seen: Seen, encoder_of: Callable[[str], Encoder]
) -> list[TaughtRow]:
    """The completions of the rows that were kept. Of a row that several algorithms of one port
    learn, what the first one saw."""
    found: dict[tuple[str, str, str], TaughtRow] = {}
    for load in loads:
        numbers = seen.get(load.name, {})
        for row in load.rows:
            key = load.role, load.port, row.id
            if isinstance(row, TokenSequence) and row.id in numbers and key not in found:
                start = row.prompt_length
                ids = row.token_ids[start:]
                found[key] = TaughtRow(
                    role=load.role,
                    port=load.port,
                    algorithm=load.settings.name,
                    row=row.id,
                    token_ids=tuple(ids.tolist()),
                    pieces=tuple(encoder_of(load.role).pieces(ids)),
                    numbers={
                        name: numbers_of(one[start:].copy())
                        for name, one in numbers[row.id].items()
                    },
                )
    return list(found.values())
