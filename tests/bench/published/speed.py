"""Published speeds as loops, and what the estimate says of them.

Training rows are a learner that reads full rows of one length; rows of generation a policy whose
completions a rule scores; rows of RL steps the whole loop. The tables are `throughput.csv` and the
speeds of `new_2026-11.csv`, where they are at hand.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tests.bench.published import architectures
from tests.bench.published.row import NotExpressible, Published, Tier, read_rows, repository
from tests.engine.measurements import Measurements

from coloop.plan.cost import bands, explain
from coloop.plan.cost.report import Explanation
from coloop.spec.io import from_dict

OLD = Measurements("throughput")
NEW = Measurements("new_2026-11")

HUB = {
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "Llama-3-8B": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3-405B": architectures.path_of("llama-3.1-405b"),
    "Llama-3-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3.3-70B": "meta-llama/Llama-3.1-70B",
    "Llama-2-70b-hf": "llama-2-70b",
    "Llama-2-70B": "llama-2-70b",
    "Llama-2-7B": "llama-2-7b",
    "Llama-3.2-3B": "meta-llama/Llama-3.2-3B",
    "Llama-3.2-1B": "meta-llama/Llama-3.2-1B",
    "Mistral-7B-v0.1": "mistral-7b",
    "Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
    "Qwen2.5-Math-7B": "qwen2.5-7b",
    "Qwen2-7B-Instruct": "qwen2.5-7b",
    "gemma-2-2b-it": "gemma-2-2b",
    "R1-Distill-Qwen-1.5B": "qwen2.5-1.5b",
    "R1-Distill-Qwen-7B": "qwen2.5-7b",
    "DeepSeek-V3": "deepseek-v3",
    "Qwen3-30B-A3B-Base": "Qwen/Qwen3-30B-A3B-Base",
    "INTELLECT-3": architectures.path_of("intellect-3"),
    "CodeLlama-34B": architectures.path_of("llama-2-34b"),
    "Llama-2-13B": architectures.path_of("llama-2-13b"),
    "Llama-2-34B": architectures.path_of("llama-2-34b"),
}
GPUS = {
    "h100_80gb": "H100-80GB",
    "a100_40gb": "A100-40GB",
    "a100_80gb": "A100-80GB",
    "H100": "H100-80GB",
    "H100 80GB HBM3": "H100-80GB",
    "H100-96GB HBM2e 500W": "H100-80GB",
    "H200": "H200-141GB",
    "B200": "B200-180GB",
    "GB200": "GB200-186GB",
    "RTX A6000": "RTX-A6000",
    "RTX PRO 6000 Blackwell": "RTX-PRO-6000",
    "n/s (>=100 GiB class)": "H200-141GB",
    "n/s": "H100-80GB",
    "n/s (80GB class)": "H100-80GB",
}
QUANTIZED = {"fp8": "fp8", "fp4": "mxfp4", "nf4": "nf4", "nf4-dq": "nf4", "bf16": None}
IMPLEMENTATIONS = {
    "prime-rl": "prime-rl",
    "torchtitan": "torchtitan",
    "torchtune": "torchtune",
    "Megatron": "megatron",
    "NeMo": "megatron",
    "verl": "verl",
    "litgpt": "litgpt",
    "ms-swift": "ms-swift",
    "fms": "fms",
    "foundation-model-stack": "fms",
    "hiyouga": "trl",
    "axolotl": "trl",
    "llm-foundry": "llm-foundry",
    "TensorRT-LLM": "tensorrt-llm",
}
"""By a part of the source: the value of `training.implementation`."""
NEMO_MINI_BATCH = 512
NEMO_PROMPT = 150


def model_path(name: str) -> str:
    """Hub id, preset or folder of a model as a table names it."""
    if name in HUB:
        return HUB[name]
    short = re.sub(r"-(Instruct|Base|2507)", "", name).lower()
    return architectures.path_of(short) if short in architectures.CONFIGS else short


# Documents


def _hardware(gpu: str, count: int, pools: Mapping[str, int] | None = None) -> dict[str, Any]:
    each = min(count, 64 if gpu == "GB200" else 8)  # one NVLink domain
    section: dict[str, Any] = {
        "nodes": max(count // each, 1),
        "gpus_per_node": each,
        "gpu": GPUS.get(gpu, gpu),
        "memory_budget": 1.0,
    }
    if pools:
        section["pools"] = {name: {"gpus": gpus} for name, gpus in pools.items()}
    return section


def _told(source: str) -> dict[str, Any]:
    named = next((name for part, name in IMPLEMENTATIONS.items() if part in source), None)
    return {"implementation": named} if named is not None else {}


def training_document(
    *,
    model: str,
    hardware: Mapping[str, Any],
    training: Mapping[str, Any],
    length: int,
    rows: int,
    mean: int | None = None,
    lora: int = 0,
    quantization: str | None = None,
    syncs: bool = False,
) -> dict[str, Any]:
    """A learner that reads full rows of one length. `syncs`: it hands its weights to an engine in a
    pool of its own, as the trainer of an RL framework."""
    section: dict[str, Any] = {"type": "pretrained", "path": model}
    if lora:
        section["lora"] = {"rank": lora}
    if quantization:
        section["quantization"] = quantization
    source = {"type": "hub", "path": "published/rows"}
    texts = {"kind": "dataset", "source": source, "rows_per_step": rows}
    texts["tokens"] = {"mean": mean or length, "max": length}
    learner: dict[str, Any] = {
        "kind": "actor",
        "model": section,
        "algorithm": {"demonstrations": {"name": "sft"}},
        "training": dict(training),
    }
    return {
        "coloop": 1,
        "name": "published",
        "nodes": {"texts": texts, "learner": learner},
        "edges": ["texts.rows -> learner.demonstrations"],
        "schedule": {"steps": 100},
        "hardware": dict(hardware),
    }


def generation_document(
    *,
    model: str,
    hardware: Mapping[str, Any],
    prompt: int,
    written: int,
    rows: int,
    quantization: str | None,
    tensor_parallel: int,
    implementation: str = "coloop",
) -> dict[str, Any]:
    """A policy with an engine in a pool of its own; it learns in another, which is not compared."""
    section: dict[str, Any] = {"type": "pretrained", "path": model}
    if quantization:
        section["quantization"] = quantization
    source = {"type": "hub", "path": "published/rows"}
    texts = {"kind": "dataset", "source": source, "rows_per_step": rows}
    texts["tokens"] = {"mean": prompt, "max": prompt}
    writer = {
        "kind": "actor",
        "model": section,
        "rollout": {
            "max_new_tokens": written,
            "expected_tokens": written,
            "tensor_parallel": tensor_parallel,
            "max_num_seqs": min(rows, 2048),
            "gpu_memory_utilization": 0.9,
            "pool": "write",
        },
        "algorithm": {"rewards": {"name": "grpo", "kl": None}},
        "training": {"implementation": implementation},
        "pool": "train",
    }
    exact = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
    return {
        "coloop": 1,
        "name": "published",
        "nodes": {"texts": texts, "writer": writer, "exact": exact},
        "edges": [
            "texts.rows -> writer.prompts",
            "writer.rollouts -> exact.rollouts",
            "exact.scores -> writer.rewards",
        ],
        "schedule": {"steps": 1},
        "hardware": dict(hardware),
    }


def rl_document(
    *,
    model: str,
    hardware: Mapping[str, Any],
    prompts: int,
    each: int,
    most: int,
    mean: int | None,
    training: Mapping[str, Any],
    prompt: int | None = None,
    rollout: Mapping[str, Any] | None = None,
    algorithm: str = "grpo",
    has_reference: bool = True,
    has_critic: bool = False,
    lora: int = 0,
    staleness: float = 0,
) -> dict[str, Any]:
    """A whole loop: it generates, scores, learns and syncs."""
    section: dict[str, Any] = {"type": "pretrained", "path": model}
    if lora:
        section["lora"] = {"rank": lora}
    texts: dict[str, Any] = {
        "kind": "dataset",
        "source": {"type": "hub", "path": "published/rows"},
        "rows_per_step": prompts,
    }
    if prompt is not None:
        texts["tokens"] = {"mean": prompt, "max": 2 * prompt}
    rewards: dict[str, Any] = {"name": algorithm}
    if algorithm != "dapo":
        rewards["kl"] = {"coefficient": 0.001} if has_reference else None
    writes: dict[str, Any] = {"completions_per_prompt": each, "max_new_tokens": most}
    writes |= dict(rollout or {})
    if mean is not None:
        writes["expected_tokens"] = mean
    actor: dict[str, Any] = {
        "kind": "actor",
        "model": section,
        "rollout": writes,
        "algorithm": {"rewards": rewards},
        "training": dict(training),
    }
    nodes: dict[str, Any] = {
        "problems": texts,
        "actor": actor,
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "math_equal"}},
    }
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    if has_reference:
        nodes["start"] = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
        edges += ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"]
    if has_critic:
        nodes["critic"] = {
            "kind": "critic",
            "model": {"type": "copy", "of": "actor"},
            "algorithm": {"name": "value"},
        }
        edges += [
            "actor.rollouts -> critic.rollouts",
            "critic.values -> actor.values",
            "actor.returns -> critic.returns",
        ]
    if "pools" in hardware:
        for name, node in nodes.items():
            if name in ("actor", "start", "critic"):
                node["pool"] = "train"
        actor["rollout"]["pool"] = "write"
    schedule = {"steps": 100, "max_staleness": staleness}
    return {
        "coloop": 1,
        "name": "published",
        "nodes": nodes,
        "edges": edges,
        "schedule": schedule,
        "hardware": dict(hardware),
    }


# Rows of `throughput.csv`


def _count(row: Mapping[str, str]) -> int:
    found = re.match(r"\d+", row["n_gpus"])
    if found is None:
        raise NotExpressible(row["id"], "the page does not say on how many GPUs")
    return int(found[0])


def _degrees(strategy: str) -> dict[str, int]:
    found = {kind: re.search(rf"\b{kind}(\d+)", strategy) for kind in ("tp", "pp", "cp", "ep")}
    return {kind: int(match[1]) for kind, match in found.items() if match}


def _training_of(row: Mapping[str, str]) -> tuple[dict[str, Any], int, str | None, int]:
    """(training, LoRA rank, quantization, gradient accumulation) of a training row."""
    strategy, precision = row["strategy"], row["precision"]
    degrees, notes = _degrees(strategy), row["notes"]
    count1 = row["id"] == "T0299"  # the recipe of one GPU
    backend = "single" if int(_count(row)) == 1 else "fsdp2"
    if "prime-rl" in row["source"] or "fsdp2" in strategy:
        backend = "fsdp2"
    if "megatron" in strategy:
        backend = "megatron"
    if strategy in ("zero2", "zero3"):
        backend = "deepspeed"
    if degrees.get("pp", 1) > 1:
        backend = "megatron"
    training: dict[str, Any] = {"backend": backend, "micro_batch": int(row["micro_batch"] or 1)}
    if backend == "deepspeed":
        training["zero_stage"] = int(strategy[-1])
    if "SHARD_GRAD_OP" in strategy:
        training["reshard_after_forward"] = False
    names = {"tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert"}
    for kind, degree in degrees.items():
        training[f"{names[kind]}_parallel"] = degree
    kept = {"True": True, "yes": True, "full": True, "Recompute": True}
    kept |= {"selective": "selective", "Offload": "offload", "False": False, "no": False}
    training["gradient_checkpointing"] = kept.get(row["activation_checkpointing"], False)
    if row["source"].startswith("modelscope"):
        training["gradient_checkpointing"] = True
    if "fp8" in precision:
        training["dtype"] = "fp8"
    if "offload" in strategy.lower() and "cpu" in strategy:
        training["offload"] = "all"
    if "8bit AdamW" in strategy or (row["source"].startswith("pytorch/torchtune") and count1):
        training["optimizer"] = {"name": "adamw8bit"}
    words = f"{strategy} {row['task']}".lower()
    lora = int((re.search(r"lora r(\d+)", words) or ["", "16" if "lora" in words else "0"])[1])
    quantized = "nf4" if "nf4" in precision or "qlora" in words else None
    accumulated = re.search(r"grad_accum (\d+)", notes)
    steps = int(accumulated[1]) if accumulated else (2 if "prime-rl" in row["source"] else 1)
    if backend == "megatron":
        steps = max(steps, 32)  # most sources do not say it
    if row["source"].startswith("modelscope"):
        steps = 2
    return training, lora, quantized, steps


def _trained(row: Mapping[str, str]) -> Published:
    count = _count(row)
    training, lora, quantization, accumulated = _training_of(row)
    training |= _told(row["source"])
    length = int(re.sub(r"\D", "", row["seq_len_or_isl"]))
    model = model_path(re.sub(r" .*", "", row["model"]))
    degrees = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    ranks = max(count // math.prod(training.get(name, 1) for name in degrees), 1)
    rows = training["micro_batch"] * ranks * accumulated
    mean = length
    value = float(row["tok_s_total"] or 0)
    if not value and row["tok_s_per_gpu"]:
        value = float(row["tok_s_per_gpu"]) * count
    if row["source"].startswith("modelscope"):
        value = 16 * 8192 / float(row["step_s"])
        rows = 16
        if count == 16:
            raise NotExpressible(row["id"], "the page does not say how many rows a step has")
    if "unpacked" in row["strategy"]:
        raise NotExpressible(row["id"], "the page does not say how long unpacked rows are")
    if not value:
        raise NotExpressible(row["id"], "the page gives no speed")
    is_rl = row["task"] == "train_rl"
    document = training_document(
        model=model,
        hardware=_hardware(row["gpu"], count),
        training=training,
        length=length,
        mean=mean,
        rows=rows,
        lora=lora,
        quantization=quantization,
    )
    return _published(row, "tok_s", value, document, trainer="rl" if is_rl else "sft")


def _published(
    row: Mapping[str, str], quantity: str, value: float | str, document: dict[str, Any], **told: Any
) -> Published:
    source = row["source"]
    tier: Tier = "A" if row["tok_s_total"] or row["tok_s_per_gpu"] else "B"
    return Published(
        id=row["id"],
        source=repository(source),
        tier=tier,
        quantity=quantity,
        value=value,
        document=document,
        notes=row["notes"],
        told={"task": row["task"], **told},
    )


def _generated(row: Mapping[str, str]) -> Published:
    count, strategy = _count(row), row["strategy"]
    prompt, written = int(row["seq_len_or_isl"] or 128), int(row["osl"] or 256)
    is_one = row["task"] == "decode_b1"
    tensor = int((re.search(r"tp(\d+)", strategy) or ["", str(count)])[1])
    eager = "transformers" in strategy or "litgpt" in strategy
    document = generation_document(
        model=model_path(row["model"]),
        hardware=_hardware(row["gpu"], 2 * count, {"train": count, "write": count}),
        prompt=prompt,
        written=written,
        rows=1 if is_one else 8192,
        quantization=QUANTIZED[row["precision"]],
        tensor_parallel=tensor,
        implementation="trl" if eager else _told(row["source"]).get("implementation", "coloop"),
    )
    return _published(
        row,
        "tok_s",
        float(row["tok_s_total"]),
        document,
        is_eager=eager,
        precision=row["precision"],
    )


VERL_DAPO = {"prompts": 512, "each": 16, "algorithm": "dapo", "has_reference": False}
VERL_LORA = {"prompts": 64, "each": 5, "most": 1024, "lora": 32}
RL_RUNS: dict[str, dict[str, Any]] = {
    "T0559": {**VERL_DAPO, "most": 8192},
    "T0561": {**VERL_DAPO, "most": 28_672},
    "T0562": {**VERL_DAPO, "most": 28_672, "pools": (16, 16), "staleness": 1},
    "T0563": {**VERL_DAPO, "most": 28_672},
    "T0564": {**VERL_DAPO, "most": 28_672, "pools": (32, 32), "staleness": 1},
    "T0565": {**VERL_DAPO, "most": 28_672},
    "T0568": {
        **VERL_DAPO,
        "most": 8192,
        "pools": (32, 96),
        "staleness": 1,
        "training": {"backend": "megatron", "expert_parallel": 8, "tensor_parallel": 2},
    },
    "T0587": {**VERL_LORA, "mean": 253, "tensor_parallel": 4},
    "T0588": {**VERL_LORA, "mean": 279, "tensor_parallel": 2},
    "T0590": {**VERL_LORA, "mean": 314, "tensor_parallel": 2},
    "T0593": {"prompts": 1024, "each": 5, "most": 1024, "mean": 153},
    "T0596": {"prompts": 512, "each": 1, "most": 512, "mean": 146, "has_critic": True},
}
"""What the source says of each run of verl. `pools`: GPUs that train and that generate."""
STAGES = {"generate": ("gen_s",), "score": ("ref_s",), "learn": ("logprob_s", "update_s")}
"""Columns of each stage; old log-probs are measured in the stage that learns."""


def _ran(row: Mapping[str, str]) -> Published:
    count = _count(row)
    if "NeMo/RL" in row["source"]:
        return _ran_in_nemo(row, count)
    run = dict(RL_RUNS[row["id"]])
    pools, tensor = run.pop("pools", None), run.pop("tensor_parallel", None)
    training = {"mini_batch": 512 if "dapo" in str(run) else None, **run.pop("training", {})}
    if row["id"] == "T0559":
        training |= {"backend": "megatron", "tensor_parallel": 2}
    training |= _told("Megatron" if training.get("backend") == "megatron" else row["source"])
    rollout: dict[str, Any] = {"tensor_parallel": tensor} if tensor else {}
    if "lora" in run or "mean" in run:  # examples without `use_remove_padding`
        training["packing"] = False
    else:
        training["packing"] = True
    hardware = _hardware(row["gpu"], count)
    if pools:
        hardware = _hardware(
            row["gpu"], sum(pools), dict(zip(("train", "write"), pools, strict=True))
        )
    mean = run.pop("mean", None)
    document = rl_document(
        model=model_path(row["model"]),
        hardware=hardware,
        mean=mean,
        training=training,
        rollout=rollout,
        **run,
    )
    seconds = {
        verb: sum(float(row[field] or 0) for field in fields) for verb, fields in STAGES.items()
    }
    is_split = row["logprob_s"] or row["ref_s"] or not pools
    longest = max(seconds, key=lambda verb: seconds[verb]) if is_split and not pools else None
    return _published(
        row,
        "step_s",
        float(row["step_s"]),
        document,
        is_told=mean is not None,
        longest=longest,
        seconds=seconds,
    )


def _ran_in_nemo(row: Mapping[str, str], count: int) -> Published:
    rows = int(re.sub(r"\D", "", row["micro_batch"]))
    most = int(re.sub(r"\D", "", row["seq_len_or_isl"])) - NEMO_PROMPT
    mean = int(re.sub(r"\D", "", row["osl"])) - NEMO_PROMPT
    found = re.search(r"gen TP,PP (\d+),(\d+); train TP,CP,EP,PP,VPP ([\d,.]+)", row["strategy"])
    assert found is not None
    degrees = [int(part) if part.isdigit() else 1 for part in found[3].strip(",.").split(",")]
    tensor, context, expert, pipeline = [*degrees, 1, 1, 1, 1][:4]
    off = re.search(r"(\d+)-off", row["strategy"])
    settings = {
        "rows": rows,
        "group": 32 if rows == 2048 else 16,
        "max_new": most,
        "mean_new": mean,
        "prompt": NEMO_PROMPT,
        "backend": "megatron",
        "tp": tensor,
        "cp": context,
        "ep": expert,
        "pp": pipeline,
        "gen_tp": int(found[1]),
        "staleness": int(off[1]) if off else 0,
        "reference": True,
        "mini": NEMO_MINI_BATCH,
    }
    document = _nemo_document(model_path(row["model"]), row["gpu"], count, settings)
    seconds = float(row["step_s"])
    return _published(row, "step_s", seconds, document, is_told=True, settings=settings)


def _nemo_document(model: str, gpu: str, count: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """On-policy runs take turns on all GPUs; others generate on one half of them."""
    is_off = settings["staleness"] > 0
    pools = {"train": count // 2, "write": count - count // 2} if is_off else None
    return rl_document(
        model=model,
        hardware=_hardware(gpu, count, pools),
        prompts=settings["rows"] // settings["group"],
        each=settings["group"],
        most=settings["max_new"],
        mean=settings["mean_new"],
        prompt=settings["prompt"],
        rollout={"tensor_parallel": settings["gen_tp"]},
        training={
            "backend": settings["backend"],
            "mini_batch": settings["mini"],
            "micro_batch": 1,  # the default of its recipes
            "tensor_parallel": settings["tp"],
            "context_parallel": settings["cp"],
            "expert_parallel": settings["ep"],
            "pipeline_parallel": settings["pp"],
            **_told("NeMo"),
        },
        has_reference=settings["reference"],
        staleness=settings["staleness"],
    )


def _synced(row: Mapping[str, str]) -> Published:
    found = re.match(r"(\d+)->(\d+)", row["n_gpus"])
    assert found is not None
    train, write = int(found[1]), int(found[2])
    document = rl_document(
        model=model_path(row["model"]),
        hardware=_hardware(row["gpu"], train + write, {"train": train, "write": write}),
        prompts=64,
        each=8,
        most=1024,
        mean=512,
        training={"backend": "megatron", "expert_parallel": 8, **_told(row["source"])},
        has_reference=False,
        staleness=1,
    )
    return _published(row, "sync_s", float(row["step_s"]), document)


UNSAID = {
    "T0621": "the page says neither rows nor lengths of a step",
    "T0623": "the page says neither rows nor lengths of a step",
    "T0624": "the page says neither lengths nor generations of a step",
    "T0625": "the page says neither lengths nor generations of a step",
    "T0626": "the page says neither lengths nor generations of a step",
    "T0627": "the page says neither lengths nor generations of a step",
    "T0630": "a rate of samples without rows or batches",
    "T0632": "a share without a configuration",
    "T0633": "a share without a configuration",
}
LOOPS = {"rl_step": _ran, "weight_sync": _synced}
for _task in ("decode_b1", "gen_max_throughput"):
    LOOPS[_task] = _generated


def read_old(row: Mapping[str, str]) -> Published:
    """A row of `throughput.csv`."""
    if row["id"] in UNSAID:
        raise NotExpressible(row["id"], UNSAID[row["id"]])
    return LOOPS.get(row["task"], _trained)(row)


# Rows of `new_2026-11.csv`


def read_new(row: Mapping[str, str]) -> Published:
    """A speed of `new_2026-11.csv`."""
    settings, count = json.loads(row["settings"]), int(row["n_gpus"])
    told: dict[str, Any] = {"task": "rl_step" if row["kind"] == "rl" else "train"}
    model = model_path(row["model"])
    if row["kind"] == "rl":
        document = _nemo_document(model, row["gpu"], count, settings)
        told |= {"is_told": True, "settings": settings}
    else:
        training = {
            "backend": settings["sharding"],
            "micro_batch": settings["micro"],
            "gradient_checkpointing": {"Recompute": True, "Offload": "offload"}.get(
                settings["ac"] or "", False
            ),
            **_told(row["source"]),
        }
        names = {"tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert"}
        for key, name in names.items():
            if settings.get(key, 1) > 1:
                training[f"{name}_parallel"] = settings[key]
        if settings.get("dtype") == "fp8":
            training["dtype"] = "fp8"
        degrees = settings.get("tp", 1) * settings.get("pp", 1) * settings.get("cp", 1)
        rows = settings["micro"] * settings["accumulation"] * max(count // degrees, 1)
        told["trainer"] = settings["trainer"]
        document = training_document(
            model=model,
            hardware=_hardware(row["gpu"], count),
            training=training,
            length=settings["seq"],
            rows=rows,
            lora=settings["lora_rank"],
        )
    return Published(
        id=row["id"],
        source=repository(row["source"]),
        tier="A",
        quantity=row["quantity"],
        value=float(row["value"]),
        document=document,
        notes=row["notes"],
        told=told,
    )


@lru_cache(maxsize=1)
def published() -> tuple[tuple[Published, ...], tuple[NotExpressible, ...]]:
    """All rows that loops can say, and those that they cannot."""
    said, unsaid = read_rows(OLD.rows, read_old)
    speeds = [row for row in NEW.rows if row["quantity"] in ("tok_s", "step_s")]
    more, missing = read_rows(speeds, read_new)
    return (*said, *more), (*unsaid, *missing)


# What the estimate says


def explained(document: Mapping[str, Any]) -> Explanation:
    parsed = from_dict(dict(document))
    assert parsed.spec is not None, parsed.diagnostics
    return explain(parsed.spec, root=architectures.folder())


BANDS = {
    "decode_b1": bands.GENERATION,
    "gen_max_throughput": bands.GENERATION,
    "weight_sync": bands.SYNC,
}
"""Bands of rows that are a single stage; others have that of their step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A measurement beside the estimate of its loop. Runs that were made have a time even if the
    estimate says that they do not fit."""

    row: Published
    predicted: float
    band: tuple[float, float]
    stage: str = ""
    """The stage that is predicted to take longest, as a verb."""

    @property
    def log(self) -> float:
        """log(predicted / measured)."""
        return math.log(self.predicted / float(self.row.value))

    @property
    def is_within(self) -> bool:
        """Whether the measurement is within the band around the prediction. Bands are of times, so
        that of a speed is turned round."""
        low, high = self.band
        ratio = float(self.row.value) / self.predicted
        if self.row.quantity == "tok_s":
            ratio = 1 / ratio
        return low <= ratio <= high


def compare(row: Published) -> Compared:
    found = explained(row.document)
    seconds = found.stage_of_parts
    longest = max(seconds, key=lambda stage: seconds[stage])
    nodes = row.document["nodes"]
    if row.quantity == "step_s":
        value = found.step_of_parts
    elif row.quantity == "sync_s":
        value = seconds["actor.sync"]
    elif "writer" in nodes:
        texts, rollout = nodes["texts"], nodes["writer"]["rollout"]
        value = texts["rows_per_step"] * rollout["max_new_tokens"] / seconds["writer.generate"]
    else:
        texts = nodes["texts"]
        value = texts["rows_per_step"] * texts["tokens"]["mean"] / seconds["learner.learn"]
    return Compared(
        row=row,
        predicted=value,
        band=BANDS.get(row.told["task"], found.time_band),
        stage=longest.rpartition(".")[2],
    )


def without_lengths(row: Published) -> Published:
    """The same loop, with lengths left to the estimate."""
    document = json.loads(json.dumps(row.document))
    document["nodes"]["actor"]["rollout"].pop("expected_tokens", None)
    return replace(row, document=document)


PAIRS = (
    ("T0561", "T0562"),
    ("T0563", "T0564"),
    ("T0598", "T0599"),
    ("N147", "N155"),
    ("N148", "N156"),
    ("N150", "N151"),
    ("N152", "N153"),
    ("N157", "N154"),
    ("N158", "N159"),
)
"""Runs of the same loop on the same GPUs, in turn and overlapping."""


def signs() -> Iterator[tuple[str, float, float]]:
    """(ids, measured, predicted) log of the speed-up of each pair by overlap."""
    rows = {row.id: row for row in published()[0]}
    for before, after in PAIRS:
        if before in rows and after in rows:
            first, second = compare(rows[before]), compare(rows[after])
            measured = math.log(float(rows[before].value) / float(rows[after].value))
            yield f"{before} -> {after}", measured, math.log(first.predicted / second.predicted)
