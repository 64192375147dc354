"""Loops of a seed for properties that hold for every loop: presets and drawn graphs with other
models, machines, ways to split work, precisions, lengths, phases and pools.

Most are valid. What is not has to be refused by a diagnostic, like what a person writes.
"""

import copy
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.engine import graphs

from coloop.spec.io import load, to_dict

LOOPS = Path(__file__).resolve().parents[2] / "presets" / "loops"
MODELS = (
    *("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-32B"),
    *("Qwen/Qwen2.5-72B", "Qwen/Qwen3-4B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B"),
    *("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"),
    *("google/gemma-2-9b", "mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V3"),
    *("HuggingFaceTB/SmolLM2-135M", "somebody/a-model-that-nobody-knows"),
)
MACHINES = (
    *("1xH100", "2xH100", "4xH100", "8xH100", "16xH100", "32xH100", "8xH200", "8xB200", "8xMI300X"),
    *("1x3090", "1x4090", "4x4090", "1xL4", "4xA10G", "8xA100-40", "8xA100-80", "16xH20", "cpu"),
)
FIGURES: dict[str, tuple[Any, ...]] = {
    "memory_gib": (16, 24, 48, 80.5, 192),
    "bf16_tflops": (30, 165, 989, 2250),
    "bandwidth": (300, 1000, 3350, 8000),
    "link": (16, 64, 450, 900),
}
TRAINING: dict[str, tuple[Any, ...]] = {
    "implementation": ("trl", "verl", "torchtitan", "megatron"),
    "mini_batch": (1, 8, 64, 256),
    "micro_batch": (1, 2, 8),
    "epochs": (1, 3),
    "gradient_checkpointing": (False, True, "selective", "offload"),
    "dtype": ("float32", "bfloat16", "float16", "fp8"),
    "master_weights": (False, True),
    "loss_chunk": (1, 512, 4096),
    "packing": (False, True),
    "offload": ("none", "optimizer", "all"),
    "tensor_parallel": (1, 2, 3, 4, 8),
    "context_parallel": (1, 2, 4),
    "expert_parallel": (1, 2, 8),
}
BACKENDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "single": {},
    "fsdp2": {"reshard_after_forward": (False, True)},
    "deepspeed": {"zero_stage": (0, 1, 2, 3)},
    "megatron": {"pipeline_parallel": (1, 2, 4)},
}
OPTIMIZERS = ("adamw", "adamw8bit", "muon", "lion", "sgd", "rmsprop")
ROLLOUT: dict[str, tuple[Any, ...]] = {
    "engine": ("torch", "vllm"),
    "completions_per_prompt": (1, 2, 8, 16),
    "max_new_tokens": (1, 16, 512, 8192, 100_000),
    "expected_tokens": (1, 16, 400),
    "temperature": (0.0, 0.7, 1.0),
    "max_num_seqs": (1, 64, 1024),
    "gpu_memory_utilization": (0.1, 0.5, 0.9),
    "tensor_parallel": (1, 2, 4, 8),
    "on_sync": ("finish", "resume", "drop"),
}
TARGETS: tuple[tuple[str, ...], ...] = ((), ("q_proj", "v_proj"), ("gate_proj", "down_proj"))


def random_loop(seed: int) -> dict[str, Any]:
    """The document of a seed."""
    chance = random.Random(seed)
    document = graphs.drawn(seed) if chance.random() < 0.2 else _preset(chance)
    for change in chance.sample(CHANGES, k=chance.randint(0, 6)):
        change(document, chance)
    return document


def _preset(chance: random.Random) -> dict[str, Any]:
    return copy.deepcopy(_document(chance.choice(_names())))


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in LOOPS.glob("*.yaml")))


@cache
def _document(name: str) -> dict[str, Any]:
    return to_dict(load(LOOPS / f"{name}.yaml"))


def _nodes(document: dict[str, Any], section: str) -> list[dict[str, Any]]:
    return [node for node in document["nodes"].values() if isinstance(node.get(section), dict)]


def _own_models(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Models that are loaded or made from scratch."""
    models = [node["model"] for node in _nodes(document, "model")]
    return [model for model in models if model.get("type") in ("pretrained", "scratch")]


def _other_model(document: dict[str, Any], chance: random.Random) -> None:
    path = chance.choice(MODELS)
    for model in _own_models(document):
        if chance.random() < 0.8:
            kept = {key: model[key] for key in ("lora", "dtype") if key in model}
            model.clear()
            model.update({"type": "pretrained", "path": path, **kept})


def _precision(document: dict[str, Any], chance: random.Random) -> None:
    for model in _own_models(document):
        model["dtype"] = chance.choice(["float32", "bfloat16", "float16"])
        if model["type"] == "pretrained" and chance.random() < 0.4:
            model["quantization"] = chance.choice(["nf4", "int8", "fp8", "mxfp4"])


def _adapters(document: dict[str, Any], chance: random.Random) -> None:
    for node in _nodes(document, "model"):
        if node["model"].get("type") != "snapshot" and chance.random() < 0.7:
            rank, targets = chance.choice([1, 16, 256]), chance.choice(TARGETS)
            node["model"]["lora"] = {"rank": rank, "targets": list(targets)}


def _other_machine(document: dict[str, Any], chance: random.Random) -> None:
    kept = {"memory_budget": chance.choice([0.3, 0.7, 0.9, 1.0])}
    document["hardware"] = {"preset": chance.choice(MACHINES), **kept}
    for node in document["nodes"].values():
        node.pop("pool", None)
        (node.get("rollout") or {}).pop("pool", None)


def _own_figures(document: dict[str, Any], chance: random.Random) -> None:
    _other_machine(document, chance)
    figures = {name: chance.choice(values) for name, values in FIGURES.items()}
    if chance.random() < 0.5:
        figures.pop("link")
    nodes, gpus = chance.choice([(1, 1), (1, 8), (2, 4), (16, 8)])
    document["hardware"] = {
        "nodes": nodes,
        "gpus_per_node": gpus,
        "gpu": "one-of-ours",
        "figures": figures,
        "price_per_gpu_hour": 2.5,
    }


def _two_pools(document: dict[str, Any], chance: random.Random) -> None:
    hardware = document.setdefault("hardware", {})
    on_cpu = hardware.get("preset", "cpu") == "cpu" and "gpu" not in hardware
    sizes = [1, 2] if on_cpu else [1, 2, 4, 8]
    unit = "workers" if on_cpu else "gpus"
    hardware["pools"] = {name: {unit: chance.choice(sizes)} for name in ("write", "train")}
    for node in document["nodes"].values():
        if "model" in node:
            node["pool"] = "train"
        if isinstance(node.get("rollout"), dict) and "training" in node:
            node["rollout"]["pool"] = "write"
    document["schedule"]["max_staleness"] = chance.choice([0, 0.5, 1, 4])


def _split_work(document: dict[str, Any], chance: random.Random) -> None:
    backend = chance.choice(list(BACKENDS))
    for node in _nodes(document, "training"):
        for name in ("zero_stage", "reshard_after_forward", "pipeline_parallel"):
            node["training"].pop(name, None)
        node["training"]["backend"] = backend
        if BACKENDS[backend] and chance.random() < 0.7:
            _choose(node["training"], BACKENDS[backend], 1, chance)
    _set(document, chance, "training", TRAINING, 4)


def _other_optimizer(document: dict[str, Any], chance: random.Random) -> None:
    for node in _nodes(document, "training"):
        node["training"]["optimizer"] = {"name": chance.choice(OPTIMIZERS), "lr": 1.0e-5}


def _other_lengths(document: dict[str, Any], chance: random.Random) -> None:
    _set(document, chance, "rollout", ROLLOUT, 3)


def _set(
    document: dict[str, Any],
    chance: random.Random,
    section: str,
    values: dict[str, tuple[Any, ...]],
    most: int,
) -> None:
    """At most so many fields of a section in each node that has it."""
    for node in _nodes(document, section):
        _choose(node[section], values, chance.randint(1, most), chance)


def _choose(
    section: dict[str, Any], values: dict[str, tuple[Any, ...]], count: int, chance: random.Random
) -> None:
    for name in chance.sample(list(values), k=count):
        section[name] = chance.choice(values[name])


def _other_rows(document: dict[str, Any], chance: random.Random) -> None:
    for node in document["nodes"].values():
        if node["kind"] == "dataset":
            node["rows_per_step"] = chance.choice([1, 2, 7, 128, 2048])


def _one_more_phase(document: dict[str, Any], chance: random.Random) -> None:
    schedule = document["schedule"]
    if schedule.get("phases"):
        phase = copy.deepcopy(chance.choice(schedule["phases"]))
        if "name" in phase:
            phase["name"] = "once-more"
        schedule["phases"].append(phase)
    else:
        steps = schedule.pop("steps", None) or 5
        schedule.pop("epochs", None)
        schedule["phases"] = [{"name": "first", "steps": steps}, {"name": "second", "steps": 2}]


CHANGES: tuple[Callable[[dict[str, Any], random.Random], None], ...] = (
    _other_model,
    _precision,
    _adapters,
    _other_machine,
    _own_figures,
    _two_pools,
    _split_work,
    _split_work,
    _other_optimizer,
    _other_lengths,
    _other_rows,
    _one_more_phase,
)
