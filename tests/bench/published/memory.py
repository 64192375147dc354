"""The tables of measured memory as loops: `memory.csv`, and the peaks of `new_2026-11.csv`.

A job of one model is a loop of one actor: rows of a dataset at `demonstrations` train it, a buffer
that a phase fills keeps what it only generates.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Any

from tests.bench.published.row import How, NotExpressible, Published, Tier, read_rows, repository

from coloop.plan.cost import explain
from coloop.plan.cost.report import GpuEstimate
from coloop.spec.io import from_dict

FOLDER = Path(__file__).resolve().parents[3].parent / "shared/ground_truth"
CONFIGS = Path(__file__).parent / "configs"
"""Folders with the `config.json` of models that are no presets."""
GIB = 2**30

MODELS = {
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B",
    "Meta-Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3.3-70B": "meta-llama/Llama-3.1-70B",
    "Llama-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3.1-405B": "llama-3.1-405b",
    "Llama-3.2-1B": "meta-llama/Llama-3.2-1B",
    "Llama-3.2-3B": "meta-llama/Llama-3.2-3B",
    "Llama-2-7B": "meta-llama/Llama-2-7b-hf",
    "Llama-2-70b-hf": "meta-llama/Llama-2-70b-hf",
    "Llama-2-70B": "meta-llama/Llama-2-70b-hf",
    "CodeLlama-34B": "codellama-34b",
    "Llama-2-34B": "codellama-34b",
    "Yi-34B-Chat": "yi-34b",
    "LLaMA-65B": "llama-65b",
    "Mistral-7B-v0.1": "mistralai/Mistral-7B-v0.1",
    "Mixtral-8x7B-Instruct-v0.1": "mistralai/Mixtral-8x7B-v0.1",
    "Magistral-Small-24B": "mistral-small-24b",
    "Mistral-Small-3.2-24B": "mistral-small-24b",
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
    "INTELLECT-3": "glm-4.5-air",
    "intellect-3": "glm-4.5-air",
    "gpt-oss-20b": "gpt-oss-20b",
    "gpt-oss-120b": "gpt-oss-120b",
    "Qwen1.5-7B-Chat": "qwen1.5-7b",
    **{
        f"Qwen2.5-{size}": f"Qwen/Qwen2.5-{size}"
        for size in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")
    },
    **{
        f"Qwen3-{size}": f"Qwen/Qwen3-{size}"
        for size in ("0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B")
    },
}
"""Hub ids, or folders below `configs`."""
GENERIC = {
    "3B": "meta-llama/Llama-3.2-3B",
    "7B": "mistralai/Mistral-7B-v0.1",
    "8B": "meta-llama/Llama-3.1-8B",
    "9B": "google/gemma-2-9b",
    "14B": "Qwen/Qwen2.5-14B",
    "32B": "Qwen/Qwen2.5-32B",
    "70B": "meta-llama/Llama-3.1-70B",
    "405B": "llama-3.1-405b",
}
"""For a page that says a size alone, a usual model of that size."""
GPUS = {
    "H100-80GB": "H100-80GB",
    "H100": "H100-80GB",
    "80GB": "A100-80GB",
    "n/s (80GB)": "A100-80GB",
    "A100-80GB": "A100-80GB",
    "A100-40GB": "A100-40GB",
    "H200": "H200-141GB",
    "B200": "B200-180GB",
    "GB200": "GB200-186GB",
    "H20": "H20-96GB",
    "H20-96GB": "H20-96GB",
    "RTX A6000": "RTX-A6000",
    "RTX 4090": "RTX-4090",
    "RTX 4060 8GB": "RTX-4060",
    "24GB class n/s": "RTX-4090",
    "48GB": "RTX-A6000",
    "L40S": "L40S-48GB",
    "A10G": "A10G-24GB",
}
ROOMY = "B200-180GB"
"""Where the page names no GPU and only a peak is compared."""

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def published() -> tuple[list[Published], list[NotExpressible]]:
    """All measurements of memory that can be said as loops, and those that cannot."""
    said, unsaid = read_rows(_table("memory"), read_row)
    new, not_new = read_rows(
        (row for row in _table("new_2026-11") if row["quantity"] == "peak_gib"), read_new
    )
    return said + new, unsaid + not_new


ORACLE = FOLDER.parent / "oracles/memory_oracle_runs.jsonl"
TRACKED = {
    "qwen2.5-7b": "Qwen/Qwen2.5-7B",
    "qwen2.5-0.5b": "Qwen/Qwen2.5-0.5B",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B",
}
CUT = {"qwen2.5-7b": "qwen2.5-7b", "llama3.1-8b": "llama-3.1-8b"}


def tracked() -> list[Published]:
    """Runs of torch's FSDPMemTracker on Hugging Face models with their own loss, embedding, layers
    and head sharded one by one, as torchtune does; up to the end of the backward pass."""
    with ORACLE.open(encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    return [
        _tracked(number, run)
        for number, run in enumerate(runs, start=1)
        if (run["loss"], run["attn"], run["reduce"]) == ("hf", "sdpa", "fp32")
    ]


def _tracked(number: int, run: Mapping[str, Any]) -> Published:
    layers, tokens = run["layers"], run["mb"] * run["seq"]
    cut = f"{CUT.get(run['model'])}-{layers}-layers"
    document = training_loop(
        cut if layers else TRACKED[run["model"]],
        ROOMY,
        run["world"],
        micro=run["mb"],
        length=run["seq"],
        training={
            "implementation": "torchtune",
            "backend": "fsdp2",
            "gradient_checkpointing": run["ac"],
            "master_weights": run["param"] == "fp32",
            "loss_chunk": tokens,
            "reshard_after_forward": bool(run["reshard"]),
        },
    )
    return Published(
        id=f"O{number:02}",
        source="torch FSDPMemTracker",
        tier="A",
        quantity="peak_gib",
        value=run["peakFB_it1_cpu"]["Total"],
        document=document,
        how="allocated",
        notes=json.dumps(
            {key: run[key] for key in ("model", "world", "mb", "seq", "ac", "layers")}
        ),
    )


def is_here() -> bool:
    """Whether the tables of measurements are on this machine."""
    return (FOLDER / "memory.csv").exists()


def _table(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


# What the estimate says of a row


def predict(row: Published) -> float | None:
    """The estimate of a row's quantity, in its unit; of `fits` and `oom`, GiB that are left. None:
    the estimate does not know."""
    found = from_dict(json.loads(json.dumps(row.document)))
    if found.spec is None:
        raise ValueError(f"{row.id}: {[d.describe() for d in found.diagnostics]}")
    told = explain(found.spec, root=CONFIGS)
    if not told.estimate.gpus:
        return None
    gpu = told.estimate.gpus[0]
    if gpu.peak_bytes is None:
        return None
    match row.quantity:
        case "peak_gib":
            return _peak(gpu, row.how)
        case "weights_gib":
            return sum(part.bytes for part in gpu.parts if part.part == "weights") / GIB
        case "kv_gib":
            return next(iter(told.estimate.rollout.values())).kv_cache_bytes / GIB
        case "kv_tokens":
            return next(iter(told.estimate.rollout.values())).kv_cache_tokens
        case "asleep_gib":
            held = [p for p in gpu.parts if p.part == "overhead" and _is_asleep(p.stages)]
            return sum(part.bytes for part in held) / GIB
        case "fits" | "oom":
            left = (gpu.usable_bytes - gpu.peak_bytes) / GIB
            return min(left, -0.01) if gpu.fits is False else left
    raise ValueError(f"{row.id}: {row.quantity} is no quantity of memory")


def _is_asleep(stages: tuple[str, ...]) -> bool:
    verbs = {stage.rpartition(".")[2] for stage in stages}
    return len(verbs) > 1 and "learn" in verbs and "generate" not in verbs


def _peak(gpu: GpuEstimate, how: How | None) -> float:
    """GiB at the peak: with `allocated` without the process and the allocator's slack, with
    `reserved` without the process alone."""
    every = {stage for part in gpu.parts for stage in part.stages}
    total = 0
    for part in gpu.parts:
        if gpu.peak_stage not in part.stages:
            continue
        is_process = part.part == "overhead" and set(part.stages) == every
        if how is not None and is_process and (how == "allocated" or len(every) > 1):
            continue
        if how == "allocated" and part.part == "overhead":
            continue
        total += part.bytes
    return total / GIB


# Loops of one model


def training_loop(
    model: str,
    gpu: str,
    gpus: int,
    *,
    micro: int,
    length: int,
    accumulation: int = 1,
    lora: Mapping[str, Any] | None = None,
    quantization: str | None = None,
    base: str | None = None,
    training: Mapping[str, Any],
    per_node: int = 8,
) -> dict[str, Any]:
    """Supervised training of one model on rows of `length` tokens."""
    model_section: dict[str, Any] = {"type": "pretrained", "path": model}
    for name, value in (("lora", lora), ("quantization", quantization), ("dtype", base)):
        if value is not None:
            model_section[name] = value
    parallel = 1
    for degree in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        parallel *= training.get(degree) or 1
    ranks = max(gpus // parallel, 1)
    rows = micro * ranks * accumulation
    return {
        "coloop": 1,
        "name": "published",
        "nodes": {
            "texts": {
                "kind": "dataset",
                "source": {"type": "hub", "path": "some/texts"},
                "rows_per_step": rows,
                "tokens": {"mean": length, "max": length},
            },
            "model": {
                "kind": "actor",
                "model": model_section,
                "algorithm": {"demonstrations": {"name": "sft"}},
                "training": {"micro_batch": micro, **training},
            },
        },
        "edges": ["texts.rows -> model.demonstrations"],
        "schedule": {"phases": [{"name": "main", "steps": 100, "learn": ["model.demonstrations"]}]},
        "hardware": _hardware(gpu, gpus, per_node),
    }


def serving_loop(
    model: str,
    gpu: str,
    gpus: int,
    *,
    prompt: int,
    new: int,
    rollout: Mapping[str, Any],
    quantization: str | None = None,
    training: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A model that only generates."""
    model_section: dict[str, Any] = {"type": "pretrained", "path": model}
    if quantization is not None:
        model_section["quantization"] = quantization
    actor: dict[str, Any] = {
        "kind": "actor",
        "model": model_section,
        "rollout": {"max_new_tokens": new, **rollout},
    }
    if training:
        actor["training"] = dict(training)
    return {
        "coloop": 1,
        "name": "published",
        "nodes": {
            "texts": {
                "kind": "dataset",
                "source": {"type": "hub", "path": "some/texts"},
                "rows_per_step": rollout.get("max_num_seqs") or 1,
                "tokens": {"mean": prompt, "max": prompt},
            },
            "model": actor,
            "kept": {"kind": "buffer", "capacity": 1024},
        },
        "edges": ["texts.rows -> model.prompts", "model.rollouts -> kept.rollouts"],
        "schedule": {"phases": [{"name": "main", "steps": 100, "fill": "kept"}]},
        "hardware": _hardware(gpu, gpus, 8),
    }


def group_loop(
    model: str,
    gpu: str,
    gpus: int,
    *,
    prompts: int,
    group: int,
    prompt: int,
    new: int,
    training: Mapping[str, Any],
    rollout: Mapping[str, Any],
    lora: Mapping[str, Any] | None = None,
    has_reference: bool = False,
) -> dict[str, Any]:
    """GRPO of one model on one pool."""
    model_section: dict[str, Any] = {"type": "pretrained", "path": model}
    if lora is not None:
        model_section["lora"] = lora
    nodes: dict[str, Any] = {
        "prompts": {
            "kind": "dataset",
            "source": {"type": "hub", "path": "some/prompts"},
            "rows_per_step": prompts,
            "tokens": {"mean": prompt, "max": prompt},
        },
        "actor": {
            "kind": "actor",
            "model": model_section,
            "rollout": {"completions_per_prompt": group, "max_new_tokens": new, **rollout},
            "algorithm": {"rewards": {"name": "grpo"}},
            "training": dict(training),
        },
        "right": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "prompts.rows -> actor.prompts",
        "actor.rollouts -> right.rollouts",
        "right.scores -> actor.rewards",
    ]
    if has_reference:
        nodes["start"] = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
        nodes["actor"]["algorithm"]["rewards"]["kl"] = {"coefficient": 0.001}
        edges += ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"]
    return {
        "coloop": 1,
        "name": "published",
        "nodes": nodes,
        "edges": edges,
        "schedule": {"phases": [{"name": "main", "steps": 100, "learn": ["actor.rewards"]}]},
        "hardware": _hardware(gpu, gpus, 8),
    }


def _hardware(gpu: str, gpus: int, per_node: int) -> dict[str, Any]:
    each = min(gpus, per_node)
    return {"gpu": gpu, "gpus_per_node": each, "nodes": ceil(gpus / each), "memory_budget": 1.0}


# The rows of memory.csv


def read_row(row: Mapping[str, str]) -> Published:
    """A row of `memory.csv`; raises `NotExpressible`."""
    source = repository(row["source"])
    for name, reader in READERS.items():
        if source.startswith(name):
            return reader(row, source)
    raise NotExpressible(row["id"], f"nothing here reads tables of {source}")


def _published(
    row: Mapping[str, str],
    source: str,
    document: Mapping[str, Any],
    how: How | None = None,
    *,
    quantity: str | None = None,
) -> Published:
    tier: Tier = row["notes"][1]  # type: ignore[assignment]
    value = row["value"]
    return Published(
        id=row["id"],
        source=source,
        tier=tier,
        quantity=quantity or row["quantity"],
        value=float(value) if re.fullmatch(r"[\d.]+", value) else value,
        document=document,
        how=how,
        notes=row["notes"],
    )


def _model(row: Mapping[str, str]) -> str:
    name = row["model"]
    plain = re.sub(r"-(Instruct|2507|FP8|Base)\b", "", name.split(" ")[0])
    for asked in (name, name.split(" ")[0], plain):
        if asked in MODELS:
            return MODELS[asked]
    raise NotExpressible(row["id"], f"the page names no model of a known shape: {name!r}")


def _gpu(row: Mapping[str, str]) -> str:
    return GPUS.get(row["gpu"], ROOMY)


def _numbers(row: Mapping[str, str]) -> tuple[int, int]:
    if not row["micro_batch"].isdigit() or not row["seq_len"].isdigit():
        raise NotExpressible(row["id"], "the page does not say micro-batch and length")
    return int(row["micro_batch"]), int(row["seq_len"])


def _fms(row: Mapping[str, str], source: str) -> Published:
    """Hugging Face Trainer with and without the plugins of fms-acceleration. In the second table
    accelerate keeps float32 weights of what it shards, in the first everything is bfloat16."""
    micro, length = _numbers(row)
    world, notes = int(row["n_gpus"]), row["notes"]
    has_kernels, has_liger = "foak" in notes, "liger" in notes
    upcast = world > 1 and "liger" in row["source"]
    rank = int(row["lora_rank"] or 0)
    training: dict[str, Any] = {
        "implementation": "fms" if has_kernels or "accelerated" in notes else "trl",
        "backend": "fsdp2" if world > 1 else "single",
        "gradient_checkpointing": True,
        "master_weights": upcast,
        "loss_chunk": LIGER_TOKENS if has_liger else micro * length,
    }
    quantization = "nf4" if "nf4" in row["precision"] else None
    document = training_loop(
        _model(row),
        _gpu(row),
        world,
        micro=micro,
        length=length,
        lora={"rank": rank, "targets": ATTENTION} if rank else None,
        quantization=quantization,
        training=training,
    )
    return _published(row, source, document, "allocated")


LIGER_TOKENS = 512
"""Tokens of a chunk of Liger's loss at these sizes: 2^k >= tokens / (vocabulary / width)."""


def _prime(row: Mapping[str, str], source: str) -> Published:
    _, length = _numbers(row)
    offload = row["activation_checkpointing"] == "Offload"
    document = _prime_loop(
        _model(row),
        _gpu(row),
        int(row["n_gpus"]),
        length=length,
        rank=int(row["lora_rank"] or 0),
        is_rl="rl trainer" in row["notes"],
        offloads=offload,
    )
    return _published(row, source, document, "reserved")


def _prime_loop(
    model: str,
    gpu: str,
    gpus: int,
    *,
    length: int,
    rank: int,
    is_rl: bool,
    offloads: bool = False,
) -> dict[str, Any]:
    """prime-rl's benchmark: two micro-batches of one packed row, FSDP2 on float32 weights. Its RL
    trainer walks over the vocabulary in parts of 8,192; four adapters lie beside each other."""
    words = _vocabulary(model)
    chunk = max(length * PRIME_WORDS // words, 1) if is_rl else length
    return training_loop(
        model,
        gpu,
        gpus,
        micro=1,
        length=length,
        accumulation=2,
        lora={"rank": PRIME_SLOTS * rank, "targets": ["all-linear"]} if rank else None,
        base="float32" if rank else None,
        training={
            "implementation": "prime-rl",
            "backend": "fsdp2",
            "gradient_checkpointing": "offload" if offloads else True,
            "loss_chunk": chunk,
        },
    )


PRIME_WORDS, PRIME_SLOTS = 8192, 4


def _vocabulary(model: str) -> int:
    from coloop.plan.settings.facts import architecture_of
    from coloop.spec.model import PretrainedModel

    return architecture_of(PretrainedModel(type="pretrained", path=model), CONFIGS).vocab_size


def read_new(row: Mapping[str, str]) -> Published:
    """A peak of `new_2026-11.csv`; raises `NotExpressible`."""
    facts = json.loads(row["settings"])
    if facts.get("trainer") not in ("rl", "sft"):
        raise NotExpressible(row["id"], "the job is unsaid")
    model = _model(row)
    common: dict[str, Any] = {"length": facts["seq"], "rank": facts["lora_rank"]}
    document = _prime_loop(
        model,
        _gpu(row),
        int(row["n_gpus"]),
        is_rl=facts["trainer"] == "rl",
        **common,
    )
    return Published(
        id=row["id"],
        source="PrimeIntellect-ai/prime-rl",
        tier=row["tier"],  # type: ignore[arg-type]
        quantity=row["quantity"],
        value=float(row["value"]),
        document=document,
        how=row["measure"] or None,  # type: ignore[arg-type]
        notes=row["source"],
    )


def _torchtune(row: Mapping[str, str], source: str) -> Published:
    notes = row["notes"]
    quantization = "nf4" if "nf4" in row["precision"] else None
    has_adapter = bool(row["lora_rank"])
    if row["micro_batch"].isdigit() and row["seq_len"].isdigit():
        micro, length = _numbers(row)
    elif row["quantity"] == "weights_gib" or "alpaca" in notes or "dataset" in row["seq_len"]:
        micro, length = 2, ALPACA_TOKENS
    else:
        raise NotExpressible(row["id"], "the page does not say micro-batch and length")
    if "in-bwd" in row["optimizer"] or "optim in bwd" in notes or row["optimizer"] == "n/s":
        raise NotExpressible(row["id"], "no setting frees each gradient within the backward pass")
    if "cumulative" in notes and any(
        later in notes for later in ("+act offload", "+8bit", "step: LoRA", "step: QLoRA")
    ):
        raise NotExpressible(row["id"], "no setting frees each gradient within the backward pass")
    if "not packed" in notes:
        length = ALPACA_TOKENS
    checkpointing: Any = {"yes": True, "no": False, "yes+offload": "offload"}.get(
        row["activation_checkpointing"], True
    )
    chunked = not has_adapter and any(word in notes for word in ("chunked", "+AC", "README"))
    is_chunked = chunked or ("README" in row["source"] and "cumulative" not in notes)
    world = int(row["n_gpus"])
    targets = ["q_proj", "v_proj"] if "on q,v" in notes else ["all-linear"]
    training: dict[str, Any] = {
        "implementation": "torchtune",
        "backend": "fsdp2" if world > 1 else "single",
        "gradient_checkpointing": checkpointing,
        "master_weights": False,
        "loss_chunk": ceil(micro * length / 8) if is_chunked else micro * length,
    }
    if "offload" in row["optimizer"]:
        training["offload"] = "all"
    rank = int(row["lora_rank"]) if row["lora_rank"].isdigit() else 8
    document = training_loop(
        _model(row),
        _gpu(row),
        world,
        micro=micro,
        length=length,
        lora={"rank": rank, "targets": targets} if has_adapter else None,
        quantization=quantization,
        training=training,
    )
    how: How = "reserved" if row["quantity"] == "peak_gib" else "allocated"
    if "ACTIVE" in notes:
        how = "allocated"
    return _published(row, source, document, how)


ALPACA_TOKENS = 512
"""Longest rows of a micro-batch of two of alpaca_cleaned, about."""


def _generate(row: Mapping[str, str], source: str) -> Published:
    """Hugging Face generate, and logs of vLLM in Qwen's issues. The later of the two pages shows
    memory without that of whole prompts."""
    if row["quantity"] != "peak_gib":
        return _vllm(row, source)
    length = int(row["seq_len"])
    new = min(2048, length - 1)
    document = serving_loop(
        _model(row),
        _gpu(row),
        int(row["n_gpus"]),
        prompt=length - new,
        new=new,
        rollout={"engine": "torch", "max_num_seqs": 1},
        training={"implementation": "trl"} if "printed GB" in row["notes"] else None,
    )
    return _published(row, source, document, "allocated")


QUANTIZED = {"fp8": "fp8", "int8": "int8", "int4": "nf4", "mxfp4": "mxfp4"}


def _vllm(row: Mapping[str, str], source: str) -> Published:
    notes, precision = row["notes"], row["precision"]
    tensor = int(re.sub(r"\D", "", row["strategy"]) or 1)
    share = re.search(r"util ([\d.]+)", notes)
    if "0.95*79.18" in notes:  # the page says another, with which its own numbers do not agree
        share = re.search(r"(0\.95)\*", notes)
    if row["quantity"] in ("kv_gib", "kv_tokens") and share is None and "28.20" not in notes:
        raise NotExpressible(row["id"], "the page does not say the engine's share of the GPU")
    length = re.search(r"max_model_len (\d+)", notes)
    most = int(length[1]) if length else int(row["seq_len"] or 0) or 8192
    acting = re.search(r"act peak ([\d.]+)", notes)
    few = 256 if "H100" not in row["gpu"] else 1024
    if acting and float(acting[1]) <= 0.3:
        few = 32
    rollout: dict[str, Any] = {
        "engine": "vllm",
        "max_num_seqs": few,
        "tensor_parallel": tensor,
        "gpu_memory_utilization": float(share[1]) if share else 0.9,
    }
    document = serving_loop(
        _model(row),
        _gpu(row),
        max(int(row["n_gpus"]), tensor),
        prompt=most - most // 4,
        new=most // 4,
        rollout=rollout,
        quantization=QUANTIZED.get(precision),
    )
    return _published(row, source, document)


def _nemo_rl(row: Mapping[str, str], source: str) -> Published:
    tensor = int(re.sub(r"\D", "", row["strategy"]))
    document = group_loop(
        MODELS["Llama-3.2-1B"],
        "H100-80GB",
        tensor,
        prompts=32,
        group=16,
        prompt=128,
        new=512,
        training={"backend": "fsdp2"},
        rollout={"engine": "vllm", "tensor_parallel": tensor, "gpu_memory_utilization": 0.6},
        has_reference=True,
    )
    return _published(row, source, document, quantity="asleep_gib")


def _trl(row: Mapping[str, str], source: str) -> Published:
    if "tiny" in row["model"]:
        raise NotExpressible(row["id"], "the page does not say the model's width")
    if row["quantity"] == "oom":
        document = group_loop(
            _model(row),
            _gpu(row),
            int(row["n_gpus"]),
            prompts=1,
            group=8,
            prompt=512,
            new=int(row["seq_len"]),
            training={
                "implementation": "trl",
                "backend": "deepspeed",
                "zero_stage": 3,
                "micro_batch": 1,
                "loss_chunk": int(row["seq_len"]),
                "gradient_checkpointing": True,
            },
            rollout={"engine": "vllm", "gpu_memory_utilization": 0.3},
        )
        return _published(row, source, document)
    prompt, new = (int(part) for part in row["seq_len"].split("+"))
    micro = int(row["micro_batch"])
    document = group_loop(
        _model(row),
        _gpu(row),
        1,
        prompts=1,
        group=micro,
        prompt=prompt,
        new=new,
        training={
            "implementation": "trl",
            "backend": "single",
            "micro_batch": micro,
            "gradient_checkpointing": False,
            "master_weights": False,
            "loss_chunk": micro * (prompt + new),
        },
        rollout={"engine": "torch", "max_num_seqs": micro},
    )
    return _published(row, source, document)


def _llama_factory(row: Mapping[str, str], source: str) -> Published:
    micro, length = _numbers(row)
    has_unsloth = "Unsloth" in row["notes"]
    document = training_loop(
        _model(row),
        _gpu(row),
        1,
        micro=micro,
        length=length,
        lora={"rank": int(row["lora_rank"]), "targets": ["all-linear"]},
        quantization="nf4" if "nf4" in row["precision"] else None,
        training={
            "implementation": "fms" if has_unsloth else "trl",  # the same kernels
            "backend": "single",
            "gradient_checkpointing": "offload" if has_unsloth else True,
            "master_weights": False,
            "loss_chunk": micro * length,
        },
    )
    return _published(row, source, document)


def _unsloth(row: Mapping[str, str], source: str) -> Published:
    size = row["model"].split(" ")[0]
    if row["quantity"] == "kv_gib" or "GRPO" in row["notes"] or size not in GENERIC:
        raise NotExpressible(row["id"], f"the page names no model or no settings: {row['model']}")
    document = training_loop(
        GENERIC[size],
        "B300-288GB",
        8 if size == "405B" and "nf4" not in row["precision"] else 1,
        micro=1,
        length=512,
        lora={"rank": 16, "targets": ["all-linear"]},
        quantization="nf4" if "nf4" in row["precision"] else None,
        training={
            "implementation": "fms",
            "backend": "single",
            "gradient_checkpointing": "offload",
            "master_weights": False,
            "optimizer": {"name": "adamw8bit"},
        },
    )
    return _published(row, source, document)


def _openrlhf(row: Mapping[str, str], source: str) -> Published:
    """PPO with ZeRO-3 and the optimizer's states in host memory; actor and critic learn."""
    world = int(row["n_gpus"])
    document = training_loop(
        _model(row),
        _gpu(row),
        world,
        micro=1,
        length=int(row["seq_len"] or 2048),
        training={
            "implementation": "trl",
            "backend": "deepspeed",
            "zero_stage": 3,
            "offload": "optimizer",
            "gradient_checkpointing": True,
        },
    )
    return _published(row, source, document)


def _axolotl(row: Mapping[str, str], source: str) -> Published:
    if row["quantity"] == "peak_gib":
        raise NotExpressible(row["id"], "the page does not say micro-batch and length")
    document = training_loop(
        _model(row),
        "RTX-4090",
        1,
        micro=1,
        length=1024,
        lora={"rank": 16, "targets": ["all-linear"]},
        quantization="nf4",
        training={
            "implementation": "trl",
            "backend": "single",
            "gradient_checkpointing": True,
            "master_weights": False,
            "optimizer": {"name": "adamw8bit"},
        },
    )
    return _published(row, source, document)


def _qlora(row: Mapping[str, str], source: str) -> Published:
    micro, length = _numbers(row)
    document = training_loop(
        _model(row),
        _gpu(row),
        1,
        micro=micro,
        length=length,
        lora={"rank": int(row["lora_rank"]), "targets": ["all-linear"]},
        quantization="nf4",
        training={
            "implementation": "trl",
            "backend": "single",
            "gradient_checkpointing": True,
            "master_weights": False,
            "offload": "optimizer",
        },
    )
    return _published(row, source, document)


def _easy_r1(row: Mapping[str, str], source: str) -> Published:
    document = group_loop(
        _model(row),
        _gpu(row),
        int(row["n_gpus"]),
        prompts=512,
        group=5,
        prompt=2048,
        new=2048,
        training={
            "implementation": "verl",
            "backend": "fsdp2",
            "micro_batch": 4,
            "gradient_checkpointing": True,
        },
        rollout={"engine": "vllm", "tensor_parallel": 2, "gpu_memory_utilization": 0.7},
        has_reference=True,
    )
    return _published(row, source, document)


def _unsaid(row: Mapping[str, str], source: str) -> Published:
    raise NotExpressible(row["id"], "the page says neither the model's size nor lengths")


READERS = {
    "foundation-model-stack": _fms,
    "PrimeIntellect-ai": _prime,
    "pytorch/torchtune": _torchtune,
    "QwenLM": _generate,
    "vllm-project": _vllm,
    "llm-d-incubation": _vllm,
    "generative-computing": _vllm,
    "kyuz0": _vllm,
    "NVIDIA-NeMo/RL": _nemo_rl,
    "huggingface/trl": _trl,
    "github.com": _llama_factory,
    "unsloth": _unsloth,
    "OpenRLHF": _openrlhf,
    "axolotl-ai-cloud": _axolotl,
    "artidoro": _qlora,
    "hiyouga/EasyR1": _easy_r1,
    "lsdefine": _unsaid,
    "THUDM": _unsaid,
    "inclusionAI": _unsaid,
    "baidu": _unsaid,
}
"""By the start of a source's name."""
