"""Token sequences as padded or packed tensors: collate, select, split, pack.

    row ──> Sequence, Pair ──collate──> Batch, PairBatch ──split_units, pack──> what a model reads

Legend: ``B`` sequences, ``T`` token positions of prompt plus completion, ``P`` pairs,
``R`` packed rows of ``S`` positions.
Invariants:
- Per-token tensors are aligned to token positions: entry t belongs to token t, and `log_probs[:,
  t]` is log p(token t | tokens before t). Position 0 has no log-prob and is never trained.
- Padding is on the right, so a causal model needs no attention mask for a padded batch.
- Outside `loss_mask` every per-token number is 0; padding is outside it.
"""

from coloop.algorithms.batch.collating import collate, collate_pairs
from coloop.algorithms.batch.padded import Batch, PairBatch, TeacherRows
from coloop.algorithms.batch.passes import split_units
from coloop.algorithms.batch.sequences import (
    Choice,
    Pair,
    Prompt,
    Sequence,
    Text,
    Unit,
    completion_sequence,
    completion_sequences,
)

__all__ = [
    "Batch",
    "Choice",
    "Pair",
    "PairBatch",
    "Prompt",
    "Sequence",
    "TeacherRows",
    "Text",
    "Unit",
    "collate",
    "collate_pairs",
    "completion_sequence",
    "completion_sequences",
    "split_units",
]
