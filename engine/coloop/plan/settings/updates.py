"""Backend, degrees and habits of each group's updates, as far as memory does not decide them."""

from collections.abc import Mapping
from dataclasses import dataclass

from coloop.plan.settings.architecture import Architecture, count_parameters
from coloop.plan.settings.bases import Base
from coloop.plan.settings.learners import Learners
from coloop.plan.settings.outline import Outline
from coloop.plan.settings.settings import PLAIN_FAMILIES, States, UpdateSettings
from coloop.spec.dtypes import Dtypes
from coloop.spec.groups import training_of
from coloop.spec.heads import head_of_group
from coloop.spec.training import Backend, Offload


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """Settles the updates of one loop."""

    outline: Outline
    learners: Learners
    dtypes: Mapping[str, Dtypes]
    """Of every weights group."""
    bases: Mapping[str, Base]
    """Of the groups that are adapters."""

    def settle(self, owner: str, arch: Architecture | None) -> UpdateSettings:
        """Backend and degrees of a group; of frozen weights, how they are spread over their pool.

        Args:
            arch: None: not known.
        """
        training = training_of(self.outline.spec, owner)
        backend = self.learners.backends.get(owner) or self.spreads_frozen(owner) or "single"
        frozen: States = "spread" if backend == "fsdp2" else "whole"
        return UpdateSettings(
            backend=backend,
            states=self.learners.states.get(owner, frozen),
            zero_stage=self._zero_stage(owner, arch) if backend == "deepspeed" else None,
            tensor_parallel=self._tensor(owner, backend),
            pipeline_parallel=(training.pipeline_parallel or 1) if backend == "megatron" else 1,
            context_parallel=training.context_parallel or 1,
            expert_parallel=training.expert_parallel or 1,
            micro_batch=training.micro_batch,
            tokens_at_once=self.outline.machine.tokens_at_once,
            gradient_checkpointing=training.gradient_checkpointing or False,
            loss_chunk=training.loss_chunk,
            packing=self._packing(owner, arch),
            offload=self._offload(owner),
            reshard_after_forward=self._reshard(owner, backend),
        )

    def spreads_frozen(self, owner: str) -> Backend | None:
        """What spreads weights that do not learn over the GPUs of their pool; None: they are whole
        in each process, as is what an adapter that does not learn stands on, whoever holds it."""
        learning = self.learners.backends
        carried = {base.beside for name, base in self.bases.items() if name not in learning}
        if owner in self.bases or owner in carried:
            return None
        return "fsdp2" if self.outline.home_of(owner).gpus > 1 else None

    def _tensor(self, owner: str, backend: Backend) -> int:
        """Ranks that share each layer while they learn; engines have whole copies beside them."""
        if owner not in self.learners.backends:
            return 1
        said = training_of(self.outline.spec, owner).tensor_parallel
        if said is None and backend == "fsdp2" and self.outline.home_of(owner).places > 1:
            path = f"nodes.{owner}.training.tensor_parallel"
            reason = "ranks with whole layers communicate least; engines generate with whole copies"
            return self.outline.decide(path, 1, reason)
        return said or 1

    def _packing(self, owner: str, arch: Architecture | None) -> bool:
        """Packing adds nothing to what padded rows need, so memory does not ask for it."""
        said = training_of(self.outline.spec, owner).packing
        if said is not None or owner not in self.learners.backends:
            return bool(said)
        value = False
        if self.outline.machine.is_cpu:
            reason = (
                "rows of similar length are padded to each other: a mask over several rows costs "
                "more"
            )
        elif arch is None or arch.model_type not in PLAIN_FAMILIES:
            reason = "it is not known how models of this family handle several texts in one row"
        elif self.dtypes[owner].compute != "bfloat16":
            reason = "the kernel for texts of different lengths needs 16 bits"
        else:
            value, reason = True, "no token is padding"
        return self.outline.decide(f"nodes.{owner}.training.packing", value, reason)

    def _offload(self, owner: str) -> Offload:
        said = training_of(self.outline.spec, owner).offload
        is_open = said is None and owner in self.learners.backends
        if not is_open or self.outline.machine.is_cpu:
            return said or "none"
        value: Offload = "none"
        path = f"nodes.{owner}.training.offload"
        return self.outline.decide(
            path, value, "the fastest; offloading is for GPUs that are too small"
        )

    def _reshard(self, owner: str, backend: Backend) -> bool:
        said = training_of(self.outline.spec, owner).reshard_after_forward
        if said is not None:
            return said
        if backend == "fsdp2" and self.learners.states.get(owner) == "spread":
            path = f"nodes.{owner}.training.reshard_after_forward"
            self.outline.decide(path, True, "gathered weights of a layer are freed after it")
        return True

    def _zero_stage(self, owner: str, arch: Architecture | None) -> int:
        spec, pool = self.outline.spec, self.outline.home_of(owner)
        said = training_of(spec, owner).zero_stage
        if said is not None:
            return said
        path = f"nodes.{owner}.training.zero_stage"
        resting = 0.0
        if arch is not None:
            has_logits = head_of_group(spec, self.outline.groups[owner].members) == "words"
            count = count_parameters(arch, "language_model" if has_logits else "score")
            resting = (4 + 14 / max(pool.places, 1)) * count.total
        if resting < 0.4 * self.outline.machine.usable_bytes(pool):
            return self.outline.decide(path, 2, "whole weights fit on each GPU")
        return self.outline.decide(path, 3, "weights are sharded too")
