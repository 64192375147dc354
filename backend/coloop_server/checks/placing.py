"""Where a loop would run faster, and which backends its learners are advised to use."""

from coloop.plan.cost.backends import BackendAdvice, advise_backends
from coloop.plan.cost.placing import Placement, place
from coloop.spec.graph import LoopSpec
from coloop_server.checks.fitting import edits_of, spec_of
from coloop_server.checks.fitting_schemas import (
    BackendChoice,
    BackendOfLearner,
    Placed,
    PlacedPool,
    PlaceLoop,
    PlaceResult,
)
from coloop_server.checks.service import refusal_of, root_of
from coloop_server.paths import Roots


def place_loop(body: PlaceLoop, roots: Roots) -> PlaceResult:
    """A placement beside the loop's own, and advice on backends."""
    spec = spec_of(body)
    root = root_of(spec, roots)

    def refusal(other: LoopSpec) -> str | None:
        return refusal_of(other, root)

    found = place(spec, root=root, refusal=refusal)
    return PlaceResult(
        yours=_placed(found.yours),
        suggested=None if found.suggested is None else _placed(found.suggested),
        edits=edits_of(found.changes),
        reason=found.reason,
        tried=found.tried,
        seconds=found.seconds,
        backends=[_backend(one) for one in advise_backends(spec, root=root, refusal=refusal)],
    )


def _placed(found: Placement) -> Placed:
    return Placed(
        pools=[
            PlacedPool(
                pool=home.pool,
                gpus=home.gpus,
                first=home.first,
                nodes=list(home.nodes),
                writers=list(home.writers),
            )
            for home in found.homes
        ],
        step_seconds=found.step_seconds,
        verbs=found.verbs,
        fits=found.fits,
        over_bytes=found.over_bytes,
        text=found.text,
    )


def _backend(found: BackendAdvice) -> BackendOfLearner:
    return BackendOfLearner(
        node=found.node,
        backend=found.backend,
        is_said=found.is_said,
        advised=found.advised,
        reason=found.reason,
        options=[
            BackendChoice(
                backend=one.backend,
                step_seconds=one.step_seconds,
                fits=one.fits,
                problem=one.problem,
            )
            for one in found.options
        ],
    )
