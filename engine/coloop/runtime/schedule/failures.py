"""What breaks in a stage and is no error of coloop's becomes one at this boundary: it names stage,
node and step, and what to do next."""

from coloop.errors import OutOfMemory, StageFailed
from coloop.plan.types import Stage
from coloop.workers.shortage import is_out_of_memory

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
