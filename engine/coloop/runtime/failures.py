"""What breaks in a stage and is no error of coloop's becomes one at this boundary: it names stage,
node and step, and what to do next."""

from coloop.errors import OutOfMemory, StageFailed
from coloop.plan.types import Stage

MEMORY_ERRORS = ("MemoryError", "OutOfMemoryError")
"""Names of the classes by which Python and torch say that memory is short."""
MEMORY_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_cpu")
"""What torch says in a plain RuntimeError of a CPU."""

LOWER = {
    "generate": "lower `rollout.max_num_seqs`, `rollout.max_new_tokens` or the rows of the step",
    "learn": "lower `training.micro_batch` or `training.loss_chunk`, or set "
    "`training.gradient_checkpointing: true`",
    "score": "lower the rows of the step or `rollout.max_new_tokens`",
}


def stage_failure(error: BaseException, stage: Stage | None, step: int) -> StageFailed:
    """The error with the place where it came up."""
    place = f"{stage.name} in step {step}" if stage is not None else f"step {step}"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    node, name = (stage.node, stage.name) if stage is not None else (None, None)
    if not is_out_of_memory(error):
        return StageFailed(f"{place} failed: {what}", node, name, step)
    hint = LOWER.get(stage.verb if stage is not None else "")
    return OutOfMemory(f"{place} ran out of memory: {what}", node, name, step, hint)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, by the error's class or by what it says."""
    names = {kind.__name__ for kind in type(error).__mro__}
    said = str(error).lower()
    return bool(names & set(MEMORY_ERRORS)) or (
        isinstance(error, RuntimeError) and any(words in said for words in MEMORY_WORDS)
    )
