"""What weights compute in on a CPU where the loop does not say it.

Products in bfloat16 with float32 master weights learn as well as float32 (held-out accuracy over
five seeds differs by +0.006 ± 0.041, tests/bench/README.md) and take 0.6 of its time, where the
processor has instructions for them and products are what takes the time.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from coloop.plan.settings.architecture import count_parameters
from coloop.plan.settings.conditions import Conditions
from coloop.plan.settings.facts import resolve_architecture
from coloop.spec.dtypes import Usual
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, weights_groups
from coloop.spec.homes import rollout_of

LEAST_PARAMETERS = 200_000
"""Of a model that gains by bfloat16 whatever its texts are like: with 0.2M an update and its
writing take 0.68 to 0.86 of float32's processor time, with 0.1M 0.75 to 1.04 (tests/bench)."""


def usual_dtypes(
    spec: LoopSpec, conditions: Conditions, root: Path | None = None
) -> Mapping[str, Usual]:
    """By weights group, in what it computes on a CPU unless the loop says otherwise.

    Args:
        root: folder for relative model paths; without it no file is opened.
    """
    begun = dict(conditions.begun.dtypes) if conditions.begun is not None else {}
    found: dict[str, Usual] = {}
    for name, group in weights_groups(spec).items():
        if name in begun:
            found[name] = Usual(dtype=begun[name], reason="as at the start of the run")
        else:
            against = next(_against(spec, group, conditions, root), None)
            found[name] = (
                Usual(dtype="bfloat16", reason=f"bfloat16: {conditions.processor.reason}")
                if against is None
                else Usual(dtype="float32", reason=f"float32: {against}")
            )
    return found


def _against(
    spec: LoopSpec, group: WeightsGroup, conditions: Conditions, root: Path | None
) -> Iterator[str]:
    """Why a group does not compute in bfloat16."""
    arch, _ = resolve_architecture(spec, group.name, root)
    if arch is None:
        yield "the size of the model is not known here"
        return
    size = count_parameters(arch).active
    if size < LEAST_PARAMETERS:
        yield f"a model of {size / 1000000.0:.2g}M parameters gains little from bfloat16"
    for node in group.members:
        rollout = rollout_of(spec, node)
        if rollout is not None and rollout.engine == "vllm":
            yield "log-probs of vLLM in bfloat16 differ by about 0.01 from those of a learner"
    if not conditions.processor.has_bf16:
        yield conditions.processor.reason
