"""Which adapters stand on the same frozen weights, and who of them holds these in each pool.

Weights can be used by several where they lie in the same process, in the same types, and spread in
the same way; elsewhere they are there again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coloop.spec.adapters import standing_of
from coloop.spec.dtypes import Dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.homes import holding_pool
from coloop.spec.model import Lora
from coloop.spec.training import Backend


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What an adapter stands on."""

    lora: Lora
    holder: str
    """The group that brings it."""
    beside: str | None
    """The group that has it in memory for this one; None: this one has."""


def bases_of(
    spec: LoopSpec, dtypes: Mapping[str, Dtypes], backends: Mapping[str, Backend]
) -> dict[str, Base]:
    """The base of each weights group that is an adapter.

    Args:
        dtypes: of every group.
        backends: of those that train.
    """
    groups = weights_groups(spec)
    asked = {name: standing_of(spec, name) for name in groups}
    standings = {name: one for name, one in asked.items() if one is not None}
    holders = {one.holder: 0 for one in standings.values()}
    steps = {**holders, **{name: one.steps for name, one in standings.items()}}
    keepers: dict[tuple[str, ...], str] = {}
    found: dict[str, Base] = {}
    for name in sorted(steps, key=lambda name: steps[name]):
        holder = standings[name].holder if name in standings else name
        how = backends.get(name, "single")
        spread = f"{how} of {name}" if how == "deepspeed" else how
        held = dtypes[name].matrices, dtypes[name].rest
        place = holder, holding_pool(spec, groups[name]), *held, spread
        keeper = keepers.setdefault(place, name)
        if name in standings:
            beside = None if keeper == name else keeper
            found[name] = Base(lora=standings[name].lora, holder=holder, beside=beside)
    return found
