"""Where the fields of an algorithm are read: by which advantage, loss, aggregation, or setting.

A field that is not named here is read whatever the others say. The recipes' tests compare the table
with what changes when a field does.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from coloop.spec.algorithm import (
    NEEDS_GROUP,
    SMOOTHED_LOSSES,
    Algorithm,
    BradleyTerry,
    DistillationAlgorithm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    resolve_algorithm,
)
from coloop.spec.base import Section


class Reader(NamedTuple):
    """A field is read if another field has one of these values."""

    by: str
    values: frozenset[Any]
    """Empty: any value but None."""

    def is_met(self, value: Any) -> bool:
        return value in self.values if self.values else value is not None


def _where(by: str, *values: Any) -> Reader:
    return Reader(by, frozenset(values))


_GROUPED = Reader("advantage", NEEDS_GROUP)
_CLIPPED = _where("loss", "clipped", "sequence_clipped", "gmpo", "clip_cov")
_CISPO = _where("loss", "cispo")
_SAPO = _where("loss", "sapo")
_DPPO = _where("loss", "dppo")
_VESPO = _where("loss", "vespo")
_CORRECTED = _where("correction.method", "token_tis", "icepop", "sequence_mask")
_GAE = _where("advantage", "gae")

READ_WHERE: Final[Mapping[type[Section], Mapping[str, tuple[Reader, ...]]]] = {
    RewardsAlgorithm: {
        "divisor": (_where("aggregation", "constant"),),
        "clip_low": (_CLIPPED,),
        "clip_high": (_CLIPPED,),
        "dual_clip": (_where("loss", "clipped"),),
        "ratio_min": (_CISPO,),
        "ratio_max": (_where("loss", "cispo", "dppo"),),
        "divergence": (_DPPO,),
        "divergence_low": (_DPPO,),
        "divergence_high": (_DPPO,),
        "baseline_decay": (_where("advantage", "moving_average"),),
        "reduce": (_where("loss", "sequence_clipped"),),
        "epsilon": (
            _GROUPED,
            _where("deviation", "unbiased", "population", "leave_one_out", "batch"),
        ),
        "deviation": (_GROUPED,),
        "whiten_deviation": (_where("whiten", True),),
        "gae_lambda": (_GAE, _where("length_alpha", None)),
        "length_alpha": (_GAE,),
        "tau_positive": (_SAPO,),
        "tau_negative": (_SAPO,),
        "k_positive": (_VESPO,),
        "k_negative": (_VESPO,),
        "lambda_positive": (_VESPO,),
        "lambda_negative": (_VESPO,),
        "covariance_share": (_where("loss", "clip_cov", "kl_cov"),),
        "allow_group_of_one": (_GROUPED,),
        "kl.horizon": (_where("kl.target"),),
        "correction.min": (_CORRECTED,),
        "correction.max": (_CORRECTED,),
    },
    PreferenceAlgorithm: {
        "label_smoothing": (Reader("loss", SMOOTHED_LOSSES),),
        "gamma": (_where("loss", "simpo"),),
    },
    DistillationAlgorithm: {
        "beta": (_where("divergence", "jsd"),),
        "k": (_where("support", "top_k"),),
        "tail": (_where("support", "top_k"),),
        "temperature": (_where("support", "top_k", "full"),),
        "correction": (_where("support", "sampled"),),
        "correction.min": (_CORRECTED,),
        "correction.max": (_CORRECTED,),
        "dtype": (_where("support", "full"),),
    },
    BradleyTerry: {"label_smoothing": (_where("soft", False),)},
}
"""By section: fields that are read only if all of their readers apply."""

OF_PRESETS: Final[Mapping[type[Section], Mapping[str, float]]] = {
    PreferenceAlgorithm: {"label_smoothing": 0.0, "gamma": 0.0}
}
"""Fields that are reported even if only the preset sets them, with the value that turns each off:
their recipes have no loss for another value."""


class Unread(NamedTuple):
    """A field that is set, but has no effect with the other settings."""

    field: str
    value: Any
    reader: Reader
    """The condition under which it would be read."""
    instead: Any
    """The value of the deciding field."""
    nothing: float | None = None
    """The value that turns it off where the preset has another; None: leave the field out."""


def unread_fields(entry: Algorithm, *, also_read: frozenset[str] = frozenset()) -> list[Unread]:
    """Fields that an algorithm's other settings leave unread; the node itself reads `also_read`."""
    full = resolve_algorithm(entry)
    nothing = OF_PRESETS.get(type(entry), {})
    unread = []
    for field, readers in READ_WHERE.get(type(entry), {}).items():
        is_there = field in nothing or _is_written(entry, field)
        value = _at(full if field in nothing else entry, field) if is_there else None
        if value is None or field in also_read:
            continue
        missing = next(
            (reader for reader in readers if not reader.is_met(_at(full, reader.by))), None
        )
        if missing is None:
            continue
        anyway = _at(_without(entry, field), field)
        fine = nothing.get(field, anyway)
        if value != fine:
            others = None if anyway == fine else fine
            unread.append(Unread(field, value, missing, _at(full, missing.by), others))
    return unread


def _at(settings: Any, field: str) -> Any:
    """The value of a field, or of one of a section in it."""
    return attrgetter(field)(settings)


def _is_written(entry: Section, field: str) -> bool:
    first, _, rest = field.partition(".")
    inner = getattr(entry, first)
    is_here = first in entry.model_fields_set
    return is_here and (not rest or (inner is not None and _is_written(inner, rest)))


def _without(entry: Algorithm, field: str) -> Any:
    """The settings that would apply without the field."""
    first, _, rest = field.partition(".")
    left_out: Any = {first: {rest}} if rest else {first}
    written = entry.model_dump(by_alias=True, exclude_unset=True, exclude=left_out)
    return resolve_algorithm(type(entry).model_validate(written))
