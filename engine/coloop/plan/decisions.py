"""Values that the spec leaves to the compiler, each with its reason."""

from collections.abc import Iterator

from coloop.plan.placement import gpus_of
from coloop.plan.types import Decision
from coloop.spec.dtypes import Dtypes, resolve_dtypes
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.nodes import ActorNode
from coloop.spec.rollout import Engine, Rollout
from coloop.spec.training import Training


def engine_of(spec: LoopSpec, rollout: Rollout) -> Engine:
    """The rollout engine in force."""
    return rollout.engine or ("vllm" if gpus_of(spec) else "torch")


def backend_of(spec: LoopSpec, training: Training | None) -> str:
    """The training backend in force."""
    if training is not None and training.backend is not None:
        return training.backend
    return "fsdp2" if gpus_of(spec) > 1 else "single"


def decide(spec: LoopSpec) -> tuple[Decision, ...]:
    """Every open value of the loop."""
    return tuple(_decisions(spec))


def _decisions(spec: LoopSpec) -> Iterator[Decision]:
    gpus = gpus_of(spec)
    yield from _types(spec, resolve_dtypes(spec, gpus=gpus))
    for name, node in spec.nodes.items():
        if isinstance(node, ActorNode) and node.rollout.engine is None:
            yield Decision(
                path=f"nodes.{name}.rollout.engine",
                value=engine_of(spec, node.rollout),
                reason="paged attention and CUDA graphs"
                if gpus
                else "the fastest for small models, and exact log-probs",
            )
    for group in weights_groups(spec).values():
        owner = spec.nodes[group.name]
        if not group.trainable or not isinstance(owner, ActorNode):
            continue
        training = owner.training
        path = f"nodes.{group.name}.training"
        if training is None or training.backend is None:
            yield Decision(
                path=f"{path}.backend",
                value=backend_of(spec, training),
                reason="shards weights and optimizer over the GPUs" if gpus > 1 else "one process",
            )
        if training is None or training.mini_batch is None:
            yield Decision(
                path=f"{path}.mini_batch",
                value="all rows of the step",
                reason="one optimizer step a step, the least off-policy choice",
            )
        if training is None or training.micro_batch is None:
            yield Decision(
                path=f"{path}.micro_batch",
                value="by tokens",
                reason="as many rows at once as fit a fixed number of padded tokens",
            )


def _types(spec: LoopSpec, dtypes: dict[str, Dtypes]) -> Iterator[Decision]:
    """In which types weights are held and computed with, where the loop does not say."""
    for group in weights_groups(spec).values():
        owner, found = spec.nodes[group.name], dtypes[group.name]
        field = "training" if group.trainable else "model"
        section = getattr(owner, field, None)
        is_said = getattr(section, "dtype", None) is not None
        has_field = group.trainable or hasattr(section, "dtype")
        if has_field and not is_said:
            path = f"nodes.{group.name}.{field}.dtype"
            yield Decision(path=path, value=found.compute, reason=found.reason)
