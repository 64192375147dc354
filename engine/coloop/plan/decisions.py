"""Values that the spec leaves to the compiler, each with its reason."""

from collections.abc import Iterator

from coloop.plan.types import Decision
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.nodes import ActorNode

DEFAULT_ENGINE = "torch"


def decide(spec: LoopSpec) -> tuple[Decision, ...]:
    """Every open value of the loop."""
    return tuple(_decisions(spec))


def _decisions(spec: LoopSpec) -> Iterator[Decision]:
    for name, node in spec.nodes.items():
        if isinstance(node, ActorNode) and node.rollout.engine is None:
            yield Decision(
                path=f"nodes.{name}.rollout.engine",
                value=DEFAULT_ENGINE,
                reason="exact log-probs and the fastest for small models; runs everywhere",
            )
    on_cpu = spec.hardware.preset_name == "cpu"
    for group in weights_groups(spec).values():
        owner = spec.nodes[group.name]
        if not group.trainable or not isinstance(owner, ActorNode):
            continue
        training = owner.training
        path = f"nodes.{group.name}.training"
        if training is None or training.backend is None:
            reason = "one process" if on_cpu else "the simplest backend that runs everywhere"
            yield Decision(path=f"{path}.backend", value="single", reason=reason)
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
