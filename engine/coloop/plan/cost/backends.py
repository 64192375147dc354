"""Which backend a learner is advised to use, and what the others would cost.

The advice is the compiler's own choice where the loop leaves the backend open; every other is
priced by the same prediction, and refused ones say why a run would not take them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from coloop.errors import ColoopError
from coloop.plan.cost.relaxing import Prices, value_at
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.paths import apply_overrides
from coloop.spec.training import Backend


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOption:
    backend: Backend
    step_seconds: float | None
    """None: it cannot be priced here."""
    fits: bool
    problem: str | None
    """Why a run would not take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendAdvice:
    """What a learner runs its updates with, and what it is advised to."""

    node: str
    backend: Backend
    """As the loop says, else as the compiler chooses."""
    is_said: bool
    """Whether the loop says it."""
    advised: Backend
    reason: str
    options: tuple[BackendOption, ...]


def advise_backends(
    spec: LoopSpec,
    *,
    root: Path | None = None,
    refusal: Callable[[LoopSpec], str | None] = lambda spec: None,
) -> tuple[BackendAdvice, ...]:
    """Advice for every learner.

    Args:
        refusal: why a run would not take a loop.
    """
    prices = Prices(spec, root)
    groups = [one.name for one in weights_groups(spec).values() if one.trainable]
    return tuple(_advice(spec, group, prices, refusal) for group in groups)


def _advice(
    spec: LoopSpec, group: str, prices: Prices, refusal: Callable[[LoopSpec], str | None]
) -> BackendAdvice:
    path = f"nodes.{group}.training.backend"
    said = value_at(spec, path)
    left_open = spec if said is None else apply_overrides(spec, {path: None})
    chosen = prices.of(left_open)
    decision = next((one for one in chosen.decisions if one.path == path), None)
    advised: Backend = decision.value if decision is not None else "single"
    reason = decision.reason if decision is not None else "nothing else is needed"
    size = chosen.estimate.parameters.get(group)
    weights = (
        f"{(f'{size / 1e9:.1f} B' if size >= 1e9 else f'{size / 1e6:.1f} M')} weights; "
        if size
        else ""
    )
    return BackendAdvice(
        node=group,
        backend=said or advised,
        is_said=said is not None,
        advised=advised,
        reason=f"{weights}{reason}",
        options=tuple(_options(spec, path, prices, refusal)),
    )


def _options(
    spec: LoopSpec, path: str, prices: Prices, refusal: Callable[[LoopSpec], str | None]
) -> Iterator[BackendOption]:
    for backend in get_args(Backend):
        try:
            tried = apply_overrides(spec, {path: backend})
            cost = prices.of(tried).estimate
        except ColoopError as error:
            yield BackendOption(backend=backend, step_seconds=None, fits=False, problem=str(error))
            continue
        problem = refusal(tried)
        seconds = cost.step_seconds if problem is None else None
        yield BackendOption(backend=backend, step_seconds=seconds, fits=cost.fits, problem=problem)
