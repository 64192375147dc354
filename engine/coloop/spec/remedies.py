"""What a run that one of its stages holds back may have otherwise: a field, and what it saves.

A stage that takes `s` of a step's `T` seconds leaves `T - saved * s`. What is saved follows from
the change: less of something saves the share that is left out, more at once the share that is no
longer waited for, one pass fewer its own share. Where no field is known to help, the one to look
at is named, and nothing is promised.
"""

from dataclasses import dataclass
from typing import Literal

SHORTER = 0.75
"""Of the tokens that may be written."""
RECOMPUTED = 0.25
"""Of learning: a second pass forward, beside one forward and two backward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One field that shortens a step."""

    when: Literal["pools_wait", "stage"]
    """`pools_wait`: several pools wait for each other, and rows may not be late; with it a step
    takes as long as the busiest. `stage`: one stage takes most of the step."""
    bound: str
    """What the run is held back by, in a word or two."""
    verbs: tuple[str, ...] = ()
    """Of the stages that it is for."""
    label: str
    reason: str
    path: str
    """`{node}` is the node of the stage."""
    change: Literal["becomes", "times", "less", "look"]
    """The value becomes `amount`, is taken so many times, or made so much less; `look`: it is only
    named."""
    amount: float | bool = 0
    only: bool | None = None
    """The value that must stand there; null: any."""
    saves: float = 0.0
    """Of the stage's time, where a value is set."""
    metric: str | None = None
    """What the node reports must reach `reach` times the value, or changing it does nothing."""
    reach: float = 0.0


REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        when="pools_wait",
        bound="late rows",
        label="Generate a step ahead",
        reason="The pools wait for each other. With rows that may be one step late "
        "(`schedule.max_staleness: 1`) a step takes as long as its busiest pool.",
        path="schedule.max_staleness",
        change="becomes",
        amount=1,
    ),
    Remedy(
        when="stage",
        bound="writing",
        verbs=("generate",),
        label="Generate shorter texts",
        reason=(
            "Texts are nearly as long as the limit. With three quarters of "
            "`rollout.max_new_tokens` generation takes three quarters of the time; longer texts "
            "are cut."
        ),
        path="nodes.{node}.rollout.max_new_tokens",
        change="times",
        amount=SHORTER,
        metric="rollout/length",
        reach=SHORTER,
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Judge in fewer words",
        reason=(
            "Verdicts are nearly as long as the limit. With three quarters of "
            "`rollout.max_new_tokens` judging takes three quarters of the time; longer verdicts "
            "are cut."
        ),
        path="nodes.{node}.rollout.max_new_tokens",
        change="times",
        amount=SHORTER,
        metric="rollout/length",
        reach=SHORTER,
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Double the number of concurrent requests",
        reason=(
            "`source.concurrency` limits the concurrent requests to the service; doubling it "
            "halves the waiting time if the service keeps up."
        ),
        path="nodes.{node}.source.concurrency",
        change="times",
        amount=2,
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Score all rows in one go",
        reason=(
            "`source.code` is called once for many rows: `prompts` and `completions` are lists. "
            "Compute what is the same for every row above `def reward` (`PATTERN = "
            "re.compile(...)`, a table from a file), and make one pass over the lists in it, "
            "`return [score(text) for text in completions]`, that stops at the first sign of a "
            "wrong answer."
        ),
        path="nodes.{node}.source.code",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Check the reward",
        reason="`source` takes this time for each row; no setting shortens it.",
        path="nodes.{node}.source",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="learning",
        verbs=("learn",),
        label="Keep the activations",
        reason=(
            "Activations are computed twice, which is a quarter of the work of learning. Turning "
            "`training.gradient_checkpointing` off saves that if there is enough memory."
        ),
        path="nodes.{node}.training.gradient_checkpointing",
        change="becomes",
        amount=False,
        only=True,
        saves=RECOMPUTED,
    ),
    Remedy(
        when="stage",
        bound="learning",
        verbs=("learn",),
        label="One pass fewer",
        reason=(
            "The rows of a step are learned several times (`training.epochs`); fewer passes take "
            "less time."
        ),
        path="nodes.{node}.training.epochs",
        change="less",
        amount=1,
    ),
    Remedy(
        when="stage",
        bound="data",
        verbs=("load", "read", "write"),
        label="Check the data",
        reason=(
            "Reading the rows (`source`) takes the time: a local file, prepared once, is faster."
        ),
        path="nodes.{node}.source",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="data",
        verbs=("prepare",),
        label="Do less for each row",
        reason=(
            "`code` is called for every row. Compute what is the same for all rows above `def "
            "write` (`PATTERN = re.compile(...)`, a table from a file), and what is known before "
            "the run in the dataset's columns."
        ),
        path="nodes.{node}.code",
        change="look",
    ),
)
"""The first that fits is named where none saves more."""
