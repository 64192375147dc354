"""What a policy wrote as a row, and how it is asked to write."""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.algorithms.batch import Prompt
from coloop.data.tables import Row, Tokens
from coloop.data.tables.row import child_row
from coloop.spec.base import as_tuple
from coloop.spec.rollout import OnSync, Rollout
from coloop.workers.messages import Sampling


def rollout_row(
    node: str, parent: Row, k: int, tokens: Tokens, prompt: Prompt, columns: Mapping[str, Any]
) -> Row:
    """The k-th child that a node wrote from a row.

    Args:
        prompt: to which it is the answer.
        columns: beside those of every text.
    """
    own = {
        "completion": tokens.text,
        "length": len(tokens.token_ids) - tokens.heard,
        "finished": tokens.finished,
        **columns,
    }
    return child_row(node, parent, k, own, tokens=tokens, version=tokens.version, prompt=prompt)


def sampling_of(
    rollout: Rollout,
    *,
    temperature: float | None = None,
    on_sync: OnSync = "finish",
    stop: Sequence[str] = (),
) -> Sampling:
    """How a node draws its texts.

    Args:
        temperature: instead of the node's own.
        stop: what ends a text beside its own.
    """
    return Sampling(
        max_new_tokens=rollout.max_new_tokens,
        temperature=rollout.temperature if temperature is None else temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        stop=(*as_tuple(rollout.stop), *stop),
        on_sync=on_sync,
        mask=rollout.mask,
    )
