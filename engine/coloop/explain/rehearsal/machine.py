"""Where a rehearsal runs: the same pools, of one process each, on a CPU."""

from typing import Any

FREE_TRAINING = (
    *("backend", "micro_batch", "dtype", "master_weights", "gradient_checkpointing"),
    *("zero_stage", "offload", "tensor_parallel", "expert_parallel", "reshard_after_forward"),
)
"""Settings of `training` that say how a machine is used; left open, the compiler decides."""
FREE_ROLLOUT = ("max_num_seqs", "gpu_memory_utilization", "tensor_parallel", "url")
"""The same of `rollout`."""
KEPT_IN_RUN = ("seed", "best")
"""What a rehearsal keeps of `run`: it leaves nothing behind."""


def on_a_desk(document: dict[str, Any]) -> list[str]:
    """Take the loop off its machines; what that leaves out is told."""
    before = document.get("hardware", {})
    pools = before.get("pools") or {"main": {}}
    document["hardware"] = {"preset": "cpu", "pools": {name: {"workers": 1} for name in pools}}
    document["run"] = {
        name: value for name, value in document.get("run", {}).items() if name in KEPT_IN_RUN
    }
    notes = []
    for name, node in document["nodes"].items():
        notes += _weights_on_a_desk(name, node)
    return notes


def _weights_on_a_desk(name: str, node: dict[str, Any]) -> list[str]:
    notes = []
    training, rollout, model = (node.get(key) for key in ("training", "rollout", "model"))
    if training is not None:
        for field in FREE_TRAINING:
            training.pop(field, None)
        if training.get("optimizer", {}).get("name") == "adamw8bit":
            training["optimizer"]["name"] = "adamw"
            notes.append(f"`{name}`: `adamw` in place of `adamw8bit`, which wants a GPU")
    if rollout is not None:
        for field in FREE_ROLLOUT:
            rollout.pop(field, None)
        rollout["engine"] = "torch"
    if model is not None and model.pop("quantization", None) is not None:
        notes.append(f"`{name}`: its weights are not quantized")
    return notes
