"""Loops for the estimate's tests."""

import copy
from types import SimpleNamespace

import pytest

from coloop.plan.settings.architecture import count_parameters
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.weights import Precision
from coloop.spec.io import from_dict

GRPO = {
    "coloop": 1,
    "name": "grpo",
    "nodes": {
        "problems": {
            "kind": "dataset",
            "source": {"type": "task", "task": "arithmetic"},
            "rows_per_step": 128,
        },
        "actor": {
            "kind": "actor",
            "model": {"type": "pretrained", "path": "Qwen/Qwen2.5-7B-Instruct"},
            "rollout": {"completions_per_prompt": 8, "max_new_tokens": 1024},
            "algorithm": {"rewards": {"name": "grpo", "kl": {"coefficient": 0.001}}},
            "training": {"backend": "fsdp2", "mini_batch": 256},
        },
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    },
    "edges": [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> start.rollouts",
        "exact.scores -> actor.rewards",
        "start.log_probs -> actor.reference",
    ],
    "schedule": {"steps": 100},
    "hardware": {"preset": "8xH100"},
}


def _merge(base, changes):
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        elif value is None:
            base.pop(key, None)
        else:
            base[key] = value
    return base


def build(**changes):
    """The GRPO loop with parts replaced; `None` takes a key away."""
    return loop_of(_merge(copy.deepcopy(GRPO), changes))


def loop_of(document):
    """The loop that a document says."""
    parsed = from_dict(document)
    assert parsed.spec is not None, parsed.diagnostics
    return parsed.spec


def engine_of(arch, *, length=4096, sequences=256, tensor_parallel=1, weight_bytes=2.0, compute=2):
    """An engine by itself, of weights of which the sizes are known and nothing else."""
    precision = Precision(
        compute_bytes=compute, master_bytes=4, frozen_bytes=2, engine_bytes=weight_bytes
    )
    return Engine(
        weights=SimpleNamespace(arch=arch, count=count_parameters(arch), precision=precision),
        pool=SimpleNamespace(places=tensor_parallel),
        writers=("actor",),
        kind="vllm",
        tensor_parallel=tensor_parallel,
        max_sequences=sequences,
        utilization=None,
        rows=0.0,
        length=length,
        prompt=length,
        new=length,
        is_colocated=True,
    )


def parts_of(gpu, part, node=None):
    """Bytes of a part on a GPU, of one node or of all."""
    return sum(p.bytes for p in gpu.parts if p.part == part and node in (None, p.node))


def stage_of(found, name):
    """A stage of an estimate."""
    return next(stage for stage in found.stages if stage.stage == name)


@pytest.fixture
def grpo():
    """A function that gives the loop with parts replaced."""
    return build


@pytest.fixture
def tiny():
    """The same loop with tiny models on a CPU."""

    def tiny_loop(**changes):
        small = {
            "nodes": {
                "actor": {
                    "model": {"type": "scratch", "architecture": "tiny-qwen3", "path": None},
                    "rollout": {"max_new_tokens": 16},
                    "training": {"backend": None, "mini_batch": None},
                }
            },
            "hardware": {"preset": "cpu"},
        }
        return build(**_merge(small, changes))

    return tiny_loop
