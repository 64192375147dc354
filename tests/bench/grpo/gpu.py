"""The same loop on a GPU: a 0.5B-shaped model, decoding against the memory's bandwidth, the update
against the processor's peak.

    decode     bytes that a step must read (weights once, keys and values of all rows)
               / measured seconds / bandwidth
    update     6 x parameters x tokens + attention / measured seconds / peak

Skipped, with the reason, where there is no GPU.
"""

from typing import Any

import torch
from tests.bench.grpo.folders import endless, rows_file
from tests.bench.grpo.turns import Arm, take_turns
from tests.bench.grpo.work import PROMPTS, SAMPLES, SIZES, Work
from tests.bench.results import Goal

from coloop.errors import PresetNotFound
from coloop.spec import presets

DECODE_SHARE, UPDATE_SHARE = 0.6, 0.4
BATCH, NEW_TOKENS, PROMPT_TOKENS = 256, 256, 64


def why_not() -> str | None:
    """Why nothing is measured here."""
    if not torch.cuda.is_available():
        return "this machine has no GPU"
    if facts() is None:
        return f"{torch.cuda.get_device_name()} is not in presets/hardware/gpus.yaml"
    return None


def facts() -> presets.DeviceFacts | None:
    """What is known of the GPU."""
    name = torch.cuda.get_device_name()
    for known in presets.list_gpus():
        if known.split("-")[0] in name.replace(" ", ""):
            try:
                return presets.gpu_facts(known)
            except PresetNotFound:
                return None
    return None


def measure() -> dict[str, Any]:
    """Share of the roofline of decoding and of the update, and the row beside TRL."""
    reason = why_not()
    if reason is not None:
        return {"skipped": reason}
    known = facts()
    assert known is not None
    folder = endless("0.5B")
    work = Work(
        size="0.5B",
        folder=str(folder),
        rows=str(rows_file()),
        new_tokens=128,
        is_compiled=False,
        gpu=known.name,
    )
    figures, failed = take_turns(
        [
            Arm(name="trl", module="trl_arm", work=work),
            Arm(name="best", module="own_arm", work=work),
        ],
        warm_up=2,
        turns=3,
        steps=1,
    )
    told = {name: one.as_dict() for name, one in figures.items()}
    learned = figures.get("best")
    share = None
    if learned is not None:
        tokens = PROMPTS * SAMPLES * (6 + work.new_tokens) * len(learned.seconds)
        share = 6 * parameters() * tokens / learned.learning / known.bf16_flops
    return {
        "gpu": torch.cuda.get_device_name(),
        "decode": decode_share(str(folder), known.bandwidth),
        "update": share,
        "arms": told,
        "failed": failed,
    }


def parameters() -> int:
    """Of the 0.5B-shaped model, the embedding once: it is the head as well."""
    size = SIZES["0.5B"]
    attention = size.width * size.head_width * (2 * size.heads + 2 * size.kv_heads)
    layer = attention + 3 * size.width * size.inner
    return size.layers * layer + size.vocabulary * size.width


def decode_share(folder: str, bandwidth: float) -> float:
    """Bytes that decoding must read, by those that the memory could give in the time it took."""
    from tests.engine.generating import generate
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from coloop.workers.rollout import Generation, TorchEngine

    size = SIZES["0.5B"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to("cuda")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    engine = TorchEngine(model, tokenizer, device="cuda", max_num_seqs=BATCH)
    generator = torch.Generator().manual_seed(0)
    prompt = torch.randint(4, 128, (PROMPT_TOKENS,), generator=generator).tolist()
    requests = [
        Generation(id=str(n), prompt_ids=prompt, seed=n, max_new_tokens=NEW_TOKENS)
        for n in range(BATCH)
    ]
    seconds = []
    for _ in range(3):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        generate(engine, requests)
        ended.record()
        torch.cuda.synchronize()
        seconds.append(began.elapsed_time(ended) / 1000)
    cached = 2 * size.layers * size.kv_heads * size.head_width * 2
    looked_at = BATCH * cached * sum(PROMPT_TOKENS + n for n in range(NEW_TOKENS))
    needed = NEW_TOKENS * 2 * parameters() + looked_at
    return needed / min(seconds) / bandwidth


def goals() -> list[Goal]:
    """What was wanted on a GPU, and what was found."""
    if why_not() is not None:
        return []
    wanted = (
        f"on a GPU, decoding at {DECODE_SHARE:.0%} of the bandwidth and updates at "
        f"{UPDATE_SHARE:.0%} of the peak"
    )
    found = measure()
    shares = found["decode"], found["update"]
    is_reached = found["update"] is not None and (
        found["decode"] >= DECODE_SHARE and found["update"] >= UPDATE_SHARE
    )
    told = ", ".join("-" if share is None else f"{share:.2f}" for share in shares)
    return [Goal(wanted=wanted, found=told, is_reached=is_reached)]
