"""Where the formulas of an estimate are from: papers, and code that was read or measured."""

from collections.abc import Mapping

from coloop.plan.settings.memory import Part

STATES = (
    "ZeRO (arXiv 1910.02054); torch.optim and FSDP2 for states of AdamW and its step; checked with "
    "torch's FSDPMemTracker"
)
PARTS: Mapping[Part, str] = {
    "weights": STATES,
    "gradients": STATES,
    "optimizer": STATES,
    "activations": (
        "Korthikanti 2022 (arXiv 2205.05198) for what layers keep; modules of transformers, "
        "checked with torch's FSDPMemTracker"
    ),
    "logits": "cross entropy of transformers, checked with torch's FSDPMemTracker",
    "kv_cache": "vLLM: gpu_worker.py and kv_cache_utils.py; equal to sizes in its logs",
    "transfer": "FSDP2: gathered layers and reduced gradients; buckets of coloop's weight sync",
    "overhead": "measured: processes, CUDA contexts, NCCL, and what the allocator holds on top",
}
OF_ENGINES: Mapping[str, str] = {
    "workspace of the engine": (
        "vLLM: what its profiling run takes; the sampler's bytes fitted to six logs"
    ),
    "static cache of the engine": "coloop's torch engine: a cache for all sequences at once",
    "workspace of the torch engine": "coloop's torch engine: prompts of a pass, logits of a token",
    "weights of the engine": "a copy of the model, divided by tensor parallelism",
}
"""By the name of a part that an engine takes."""
ROWS = "measured with coloop: seconds of a row, of a call and of a table"
CORES = "fitted to passes, generation and updates on CPUs (tests/bench)"
STAGES: Mapping[str, str] = {
    "generate": (
        "roofline of memory traffic and products (Williams 2009) over the lengths of rows; checked "
        "with published throughput of vLLM and TensorRT-LLM"
    ),
    "score": "operations of a forward pass (Narayanan 2021, arXiv 2104.04473)",
    "learn": (
        "operations of products and attention (Narayanan 2021, arXiv 2104.04473; Dao 2023, arXiv "
        "2307.08691), and traffic of memory and network beside them"
    ),
    "sync": "bytes over the links between GPUs; checked with published syncs",
    "evaluate": "as for generation",
}
STEP = "the scheduler's rules, simulated: stages of one pool take turns, others overlap"
PEAK = "the largest sum over the stages of what is in memory during a stage"


def source_of_stage(verb: str, *, has_model: bool, on_cpu: bool) -> str:
    if not has_model or verb not in STAGES:
        return ROWS
    return CORES if on_cpu else STAGES[verb]
