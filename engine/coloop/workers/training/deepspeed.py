"""The `deepspeed` backend: model states are spread over the ranks by ZeRO.

Stage 1 spreads the running means, stage 2 gradients as well, stage 3 all. The optimizer is torch's,
so nothing is compiled. What is saved has the form of `single`, for any backend and number of ranks.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from coloop.errors import BackendMissing
from coloop.spec.dtypes import Dtypes
from coloop.spec.training import Optimizer, Training
from coloop.workers.training.adapters import Adapter
from coloop.workers.training.forward import TOKENS_AT_ONCE, TokenModel
from coloop.workers.training.learner import Learner
from coloop.workers.training.ranks import ALONE, Ranks
from coloop.workers.training.shards import blend
from coloop.workers.training.single import token_model
from coloop.workers.training.states import Keep, ModelStates, everything

OPTIMIZERS = ("adamw", "lion")
"""Those whose step is one of the flat parts that ZeRO makes of the weights."""
STAGE = 2  # where nothing is said
HEAD = "head"
"""In a group of weights, the number of the head that they are; None: they are no head's."""


class DeepSpeedBackend(Learner):
    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        dtypes: Dtypes,
        group: str = "",
        ranks: Ranks = ALONE,
        tokens_at_once: int = TOKENS_AT_ONCE,
        is_packed: bool = False,
        adapter: Adapter | None = None,
    ) -> None:
        """See `token_model`; the model is whole and alike on every rank."""
        if find_spec("deepspeed") is None:
            raise BackendMissing(
                "`deepspeed` is not installed; install it with `pip install 'coloop[deepspeed]'`, "
                "or use `fsdp2`, which needs no package"
            )
        if training.optimizer.name not in OPTIMIZERS:
            raise BackendMissing(
                f"`deepspeed` trains with {' or '.join(OPTIMIZERS)}, not with "
                f"{training.optimizer.name}; `fsdp2` has all"
            )
        if training.zero_stage == 0:
            raise BackendMissing(
                "`zero_stage: 0` does not shard anything over the ranks; use `single` for that"
            )
        tokens = token_model(
            model,
            training,
            dtypes,
            backend="deepspeed",
            autocast=None,
            tokens_at_once=tokens_at_once,
            is_packed=is_packed,
            adapter=adapter,
        )
        states = ZeroStates(tokens, training, dtypes, ranks)
        super().__init__(tokens, states, adapter, group=group, ranks=ranks)


class ZeroStates(ModelStates):
    """States in DeepSpeed's engine."""

    is_whole = False

    def __init__(
        self, tokens: TokenModel, training: Training, dtypes: Dtypes, ranks: Ranks
    ) -> None:
        import deepspeed

        ranks.mesh(tokens.device.type)  # the ranks have met
        os.environ["LOCAL_RANK"] = str(tokens.device.index or 0)  # it asks nobody else
        if tokens.device.type == "cpu":
            # What it would compile for a CPU is a sum over shared memory, which gloo has.
            deepspeed.ops.__dict__["__compatible_ops__"] = {}
        super().__init__(tokens.model, training.optimizer)
        self._stage = training.zero_stage or STAGE
        self._ranks = ranks
        self._torch = self._optimizer.only
        self._sizes = [len(group["params"]) for group in self._torch.param_groups]
        self._trained = [p for group in self._torch.param_groups for p in group["params"]]
        heads = tokens.net.heads
        self._firsts = _part_heads(self._torch, heads)
        self._taught: set[int] = set()
        """Heads, by their number, that have got a gradient since the last step."""
        self._torch.register_step_pre_hook(self._keep_untaught)
        for number, head in enumerate(heads):
            for own in head.parameters():
                if own.requires_grad:
                    own.register_hook(  # type: ignore[no-untyped-call]
                        partial(self._note_taught, number)
                    )
        if self._stage == 3:
            for block in tokens.lean_blocks:  # its layers are not called: it gathers for them
                deepspeed.utils.set_z3_leaf_module(block, True)
        masters = [p.detach().float().clone() for p in self._trained] if dtypes.casts else []
        self._engine, *_ = deepspeed.initialize(
            model=tokens.net,
            optimizer=self._torch,
            config=_config(self._stage, dtypes),
            dist_init_required=False,
        )
        if self._stage == 3:
            for weight in tokens.net.weights:
                deepspeed.zero.register_external_parameter(tokens.net, weight)
        tokens.call = self._engine
        self._tokens = tokens
        self._has_gradient = False
        for parameter, master in zip(self._trained, masters, strict=False):
            self._put(parameter, master)  # the engine began with them rounded
        self.reset_optimizer()

    def backward(self, loss: Tensor) -> None:
        self._has_gradient = True
        self._engine.backward(loss * self._ranks.size)  # it takes the mean over the ranks

    def sum_up(self, flags: Sequence[bool]) -> list[bool]:
        heads = range(len(self._tokens.net.heads))
        agreed = self._ranks.any_of([*flags, *(number in self._taught for number in heads)])
        self._taught = {number for number in heads if agreed[len(flags) + number]}
        return agreed[: len(flags)]

    def step(self, section: Optimizer, *, rate: float, clip: float | None) -> Tensor:
        self._optimizer.set_rate(section, rate)
        zero = self._engine.optimizer
        zero.clip_grad = clip or 0.0
        self._engine.step()
        self._forget_gradient()
        norm = zero._global_grad_norm
        return torch.as_tensor(float("inf") if zero.overflow else norm, dtype=torch.float32)

    def drop_gradient(self) -> None:
        """A step that is not finite drops what every ZeRO stage keeps of a gradient."""
        if self._has_gradient:
            self._engine.backward(self._tokens.touched() * float("nan"))
            self._engine.step()
        self._forget_gradient()

    def _forget_gradient(self) -> None:
        self._has_gradient = False
        self._taught.clear()
        if self._stage == 3:  # it would add to what a weight got last, however long ago
            self._engine.optimizer.grad_partitions_flat_buffer.zero_()

    def _note_taught(self, head: int, gradient: Tensor) -> None:
        del gradient
        self._taught.add(head)

    def _keep_untaught(self, optimizer: torch.optim.Optimizer, *given: Any) -> None:
        """A head without a gradient takes no step: ZeRO would give it one by zeros."""
        del given
        for group in optimizer.param_groups:
            if group[HEAD] is not None and group[HEAD] not in self._taught:
                for flat in group["params"]:
                    flat.grad = None

    def reset_optimizer(self) -> None:
        self._torch.state.clear()
        self._link()

    def weights(self, keep: Keep = everything) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._model.named_parameters():
            if keep(name):
                yield name, self._whole(parameter)

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self._model.named_parameters():
            if name in weights:
                self._put(parameter, weights[name])

    @torch.no_grad()
    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        named = dict(self._model.named_parameters())
        missing = set(named)
        for name, weight in given:
            if name in missing:
                own = self._whole(named[name])
                blend({name: own}, [(name, weight)], ema)
                self._put(named[name], own)
                missing.discard(name)
        return missing

    def state_dict(self, *, has_weights: bool = True) -> dict[str, Any]:
        state = {"optimizer": self.optimizer_state()}
        if not has_weights:
            return state
        held: dict[int, Tensor] = {}
        for _, parameter in self._model.named_parameters():
            held[id(parameter)] = self._kept(self._whole(parameter))
        named = self._model.state_dict(keep_vars=True)
        weights = {name: held.get(id(value), value.detach()) for name, value in named.items()}
        return {"model": weights, **state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        named = self._model.state_dict(keep_vars=True)
        if set(named) != set(state["model"]):
            raise KeyError(f"weights {sorted(set(named) ^ set(state['model']))[:3]} do not match")
        for name, parameter in named.items():
            self._put(parameter, state["model"][name])
        self.load_optimizer_state(state["optimizer"])

    def _whole(self, parameter: Tensor) -> Tensor:
        import deepspeed
        from deepspeed.utils import safe_get_full_fp32_param

        if parameter.requires_grad:
            whole: Tensor = safe_get_full_fp32_param(parameter)
            return whole
        with deepspeed.zero.GatheredParameters([parameter], enabled=self._stage == 3):
            return parameter.detach().clone()

    def _kept(self, tree: Any) -> Any:
        return tree.to("cpu") if self._ranks.is_first else torch.empty(0)

    def _put(self, parameter: Tensor, value: Tensor) -> None:
        shape = getattr(parameter, "ds_shape", parameter.shape)
        if value.shape != shape:
            raise ValueError(f"a weight has shape {tuple(value.shape)}, not {tuple(shape)}")
        self._put_master(parameter, value.float())
        if self._stage < 3:
            parameter.data.copy_(value)
            return
        parameter.ds_tensor.data.copy_(self._part(parameter, value))  # type: ignore[attr-defined]
        if parameter.numel() == value.numel():  # small ones stay whole on every rank
            parameter.data.copy_(value)

    def _put_master(self, parameter: Tensor, value: Tensor, key: str | None = None) -> None:
        """A number for each element of a weight: its master, or one of its running means."""
        from deepspeed import utils

        if not parameter.requires_grad:
            return
        if self._stage == 3:
            part = self._part(parameter, value)
            if key is None:
                utils.safe_set_local_fp32_param(parameter, part)
            else:
                utils.safe_set_local_optimizer_state(parameter, part, key)
        elif key is None:
            utils.safe_set_full_fp32_param(parameter, value)
        else:
            utils.safe_set_full_optimizer_state(parameter, value, key)

    def _part(self, parameter: Any, value: Tensor) -> Tensor:
        """This rank's part of a whole weight at stage 3, the last padded."""
        size = parameter.ds_tensor.numel()
        flat = value.flatten()
        flat = torch.nn.functional.pad(flat, (0, size * self._ranks.size - flat.numel()))
        return flat[size * self._ranks.rank : size * (self._ranks.rank + 1)].to(
            parameter.ds_tensor.device
        )

    def _flat_parts(self) -> dict[int, Tensor]:
        """By weight id, this rank's parts that the optimizer steps, end to end by group."""
        zero = self._engine.optimizer
        groups, flats = (
            (zero.fp16_groups, zero.fp32_partitioned_groups_flat)
            if self._stage == 3
            else (zero.bit16_groups, zero.single_partition_of_fp32_groups)
        )
        return {
            id(weight): flat for group, flat in zip(groups, flats, strict=True) for weight in group
        }

    def optimizer_state(self) -> dict[str, Any]:
        """In the form of an optimizer that holds every weight whole."""
        from deepspeed.utils import safe_get_full_optimizer_state

        self._link()
        state: dict[int, dict[str, Any]] = {}
        flats = self._flat_parts()
        for number, parameter in enumerate(self._trained):
            held = self._torch.state.get(flats[id(parameter)]) or {}
            means = [key for key, value in held.items() if _is_mean(value)]
            own = {key: torch.clone(held[key]) for key in held if key not in means}
            whole = {
                key: self._kept(safe_get_full_optimizer_state(parameter, key)) for key in means
            }
            if held:
                state[number] = {**own, **whole}
        groups: list[dict[str, Any]] = []
        for size, part in zip(self._sizes, self._firsts, strict=True):
            start = sum(len(one["params"]) for one in groups)
            plain = {key: value for key, value in part.items() if key != HEAD}
            groups.append({**plain, "params": list(range(start, start + size))})
        parts = {"main": {"state": state, "param_groups": groups}}
        return {"name": self._section.name, "parts": parts}

    def load_optimizer_state(self, given: Mapping[str, Any]) -> None:
        if given["name"] != self._section.name:
            raise ValueError(
                f"the state is of {given['name']!r}, but the optimizer is {self._section.name!r}"
            )
        part = given["parts"]["main"]["state"]
        self._torch.state.clear()
        flats = self._flat_parts()
        for number, own in part.items():
            flat = flats[id(self._trained[number])]
            if not self._torch.state.get(flat):
                self._torch.state[flat] = {
                    key: torch.zeros_like(flat) if _is_mean(value) else value.clone()
                    for key, value in own.items()
                }
        self._link()
        for number, own in part.items():
            for key, value in own.items():
                if _is_mean(value):
                    self._put_master(self._trained[number], value, key)

    def _link(self) -> None:
        """Tell ZeRO where running means lie; it looks itself only after the first group's step."""
        if self._stage < 3:
            zero = self._engine.optimizer
            zero._hp_optimizer_states_linked = False
            if self._torch.state:
                zero._lazy_init_hp_params_optimizer_state()


def _part_heads(
    optimizer: torch.optim.Optimizer, heads: Sequence[nn.Module]
) -> list[dict[str, Any]]:
    """Make each head a group of its own: ZeRO has one count of steps for a group's weights.
    Returns, of each original group, one that has its settings."""
    head_of = {id(weight): n for n, head in enumerate(heads) for weight in head.parameters()}
    firsts, parted = [], []
    for group in optimizer.param_groups:
        by_head: dict[int | None, list[Tensor]] = {}
        for weight in group["params"]:
            by_head.setdefault(head_of.get(id(weight)), []).append(weight)
        parts = [{**group, "params": own, HEAD: head} for head, own in by_head.items()]
        firsts.append(parts[0])
        parted += parts
    optimizer.param_groups = parted
    return firsts


def _is_mean(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0


def _config(stage: int, dtypes: Dtypes) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": 1,
        "managed_gradient_accumulation": False,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "overlap_comm": False},
        "bf16": {"enabled": dtypes.compute == "bfloat16"},
        "steps_per_print": 1 << 62,
    }
