"""The runs of a sweep: every combination of the values that are tried, over seeds.

    {nodes.actor.training.optimizer.lr: [1e-5, 3e-5]} x seeds 0, 1, 2 --> 6 runs

`run.sweep` in the loop of each run names the sweep and the settings that are tried; so the group is
in the run folders, whoever started the runs. The name is that of the loop with a hash of the loop
and the settings: more values later, or more seeds, are runs of the same group.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

from coloop.errors import SpecProblem, SweepRefused
from coloop.explain.experiment import about_metric, main_metric
from coloop.spec import presets
from coloop.spec.base import Section
from coloop.spec.graph import LoopSpec
from coloop.spec.io import content_hash, parse, require, to_dict
from coloop.spec.paths import apply_overrides, get_value

MOST_RUNS = 200
"""Runs of one sweep."""
MOST_FIELDS = 20
HASH_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The loop with one combination of values."""

    values: Mapping[str, Any]
    """By path."""
    label: str
    """The values in words, e.g. `lr 1e-05, kl 0.1`."""
    text: str
    spec: LoopSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    of: str
    """Name of the group in `run.sweep`."""
    fields: tuple[str, ...]
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    metric: str
    """`node.metric` by which the runs are compared."""
    better: Literal["higher", "lower"]

    def runs(self) -> Iterator[tuple[Variant, int]]:
        """Seed by seed, so that an interrupted sweep has compared values."""
        return ((variant, seed) for seed in self.seeds for variant in self.variants)

    def text_of(self, variant: Variant, seed: int) -> str:
        """The loop of one run."""
        group = {"of": self.of, "fields": list(self.fields)}
        changes = [("run.seed", seed), ("run.sweep", group)]
        return presets.patched(
            variant.text, [{"op": "set", "path": path, "value": value} for path, value in changes]
        )


def sweep_of(text: str, tried: Mapping[str, Sequence[Any]], *, seeds: int = 1) -> Sweep:
    """The runs of a sweep over a loop that is valid.

    Args:
        text: the loop.
        tried: by path, the values to try.
        seeds: number of seeds, from that of the loop on.

    Raises:
        SweepRefused: there is nothing to try, there are too many runs, or nothing measures them.
        SpecProblem: the loop cannot be read, there is no such path, or a value does not fit there.
    """
    spec = require(parse(text))
    fields = tuple(tried)
    grid = {path: _distinct(tried[path]) for path in fields}
    _check_size(grid, seeds)
    for path, values in grid.items():
        for value in values:
            apply_overrides(spec, {path: value})
    metric = main_metric(spec)
    if metric is None:
        raise SweepRefused(
            "no evaluation or scorer without weights measures the loop; add an evaluation, or set "
            "`run.best`"
        )
    combinations = [dict(zip(fields, values, strict=True)) for values in product(*grid.values())]
    labels = labels_of(fields, combinations)
    variants = [
        _variant(text, values, label) for values, label in zip(combinations, labels, strict=True)
    ]
    first = spec.run.seed
    return Sweep(
        of=_name(spec, fields),
        fields=fields,
        seeds=tuple(range(first, first + seeds)),
        variants=tuple(variants),
        metric=metric,
        better=about_metric(metric.partition(".")[2])[1],
    )


def values_of(spec: LoopSpec, fields: Sequence[str]) -> dict[str, Any]:
    """The values of a run of a sweep, by path, as JSON; a path that does not exist is left out."""
    found = {}
    for path in fields:
        try:
            found[path] = _plain(get_value(spec, path))
        except SpecProblem:
            continue
    return found


def labels_of(fields: Sequence[str], combinations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each combination in words. A setting is named by as much of its path's end as tells it from
    the others."""
    names = {path: _short(path, fields) for path in fields}
    return [
        ", ".join(f"{names[path]} {_shown(values[path])}" for path in fields if path in values)
        for values in combinations
    ]


def _check_size(grid: Mapping[str, Sequence[Any]], seeds: int) -> None:
    if not grid:
        raise SweepRefused(
            "there is nothing to try: name a setting and its values, e.g. "
            "nodes.actor.training.optimizer.lr=1e-5,3e-5"
        )
    if len(grid) > MOST_FIELDS:
        raise SweepRefused(f"{len(grid)} settings are tried; a sweep has at most {MOST_FIELDS}")
    if "run.seed" in grid:
        raise SweepRefused("`run.seed` is not tried as a value; give the number of seeds instead")
    for path, values in grid.items():
        if not values:
            raise SweepRefused(f"`{path}` has no value to try; give one or more")
    if seeds < 1:
        raise SweepRefused(f"{seeds} seeds are no run; give 1 or more")
    count = prod(len(values) for values in grid.values()) * seeds
    if count > MOST_RUNS:
        parts = [f"{len(values)} of `{path}`" for path, values in grid.items()]
        raise SweepRefused(
            f"{' x '.join(parts)} x {seeds} seeds are {count:,} runs; a sweep has at most "
            f"{MOST_RUNS}: try fewer values, or fewer seeds"
        )


def _variant(text: str, values: Mapping[str, Any], label: str) -> Variant:
    changes = [{"op": "set", "path": path, "value": value} for path, value in values.items()]
    changed = presets.patched(text, changes)
    return Variant(values=values, label=label, text=changed, spec=require(parse(changed)))


def _name(spec: LoopSpec, fields: Sequence[str]) -> str:
    whole = json.dumps([content_hash(spec), sorted(fields)])
    return f"{spec.name[:80]}-sweep-{hashlib.sha256(whole.encode()).hexdigest()[:HASH_DIGITS]}"


def _distinct(values: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(type(value) is type(one) and value == one for one in kept):
            kept.append(value)
    return kept


def _short(path: str, fields: Sequence[str]) -> str:
    words = path.split(".")
    others = [field.split(".") for field in fields if field != path]
    for count in range(1, len(words)):
        if all(other[-count:] != words[-count:] for other in others):
            return ".".join(words[-count:])
    return path


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return to_dict(value)
    return list(map(_plain, value)) if isinstance(value, tuple | list) else value
