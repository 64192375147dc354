"""What weights say of texts: encoded, without those that the model cannot read, scored."""

from collections.abc import Sequence

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.spec.heads import Reading
from coloop.workers.initial_weights import Home
from coloop.workers.messages import TooLong
from coloop.workers.shortage import sized
from coloop.workers.training import Hooks


def score_texts(
    home: Home,
    node: str,
    texts: Sequence[TokenSequence],
    temperature: float,
    reading: Reading,
    hooks: Hooks,
) -> list[Numbers | TooLong]:
    """See `WorkerApi.score`."""
    encoder = home.weights.encoder(node)
    sequences = [encoder.sequence(text) for text in texts]
    refused = home.weights.too_long([len(sequence.token_ids) for sequence in sequences])
    fitting = [
        sequence for sequence, problem in zip(sequences, refused, strict=True) if problem is None
    ]
    with sized(home.at_once):
        numbers = home.score(fitting, reading, temperature=temperature, hooks=hooks, node=node)
    if reading in ("log_probs", "values", "steps"):
        numbers = [
            row[sequence.prompt_length :] for row, sequence in zip(numbers, fitting, strict=True)
        ]
    scored = iter(numbers)
    return [next(scored) if problem is None else problem for problem in refused]


def score_sides(
    home: Home, node: str, pairs: Sequence[Pair], hooks: Hooks
) -> list[dict[str, Numbers] | TooLong]:
    """See `WorkerApi.score_pairs`."""
    sides = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
    scored = score_texts(home, node, sides, 1.0, "log_probs", hooks)
    return [_both(scored[2 * index], scored[2 * index + 1]) for index in range(len(pairs))]


def _both(chosen: Numbers | TooLong, rejected: Numbers | TooLong) -> dict[str, Numbers] | TooLong:
    if isinstance(chosen, TooLong) or isinstance(rejected, TooLong):
        problems = [side for side in (chosen, rejected) if isinstance(side, TooLong)]
        return max(problems, key=lambda problem: problem.tokens)
    return {"chosen": chosen, "rejected": rejected}
