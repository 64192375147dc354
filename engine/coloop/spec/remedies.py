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
        label="Write a step ahead",
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
        label="Write shorter texts",
        reason="Texts are nearly as long as they may be. With three quarters of "
        "`rollout.max_new_tokens` writing takes three quarters of its time; what needs more is "
        "cut.",
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
        reason="Judgements are nearly as long as they may be. With three quarters of "
        "`rollout.max_new_tokens` judging takes three quarters of its time; what needs more is "
        "cut.",
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
        label="Ask twice as much at once",
        reason="The service answers so many requests at once (`source.concurrency`); with twice "
        "as many half of the waiting is saved, where the service keeps up.",
        path="nodes.{node}.source.concurrency",
        change="times",
        amount=2,
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Score all rows in one go",
        reason="`source.code` is called once for many rows: `prompts` and `completions` are lists. "
        "Write above `def reward` what is the same for every row (`PATTERN = re.compile(...)`, a "
        "table that is read), and in it one pass over the lists, `return [score(text) for text in "
        "completions]`, that stops at the first sign of a wrong answer.",
        path="nodes.{node}.source.code",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="judging",
        verbs=("score",),
        label="Look at the reward",
        reason="What `source` does for each row takes the time; no setting shortens it.",
        path="nodes.{node}.source",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="learning",
        verbs=("learn",),
        label="Keep the activations",
        reason="Activations are computed a second time, a quarter of the work of learning. "
        "Without `training.gradient_checkpointing` that is saved, where the memory is there.",
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
        reason="The rows of a step are learned several times (`training.epochs`); each pass that "
        "is left out saves its share.",
        path="nodes.{node}.training.epochs",
        change="less",
        amount=1,
    ),
    Remedy(
        when="stage",
        bound="data",
        verbs=("load", "read", "write"),
        label="Look at the data",
        reason="Where the rows come from (`source`) takes the time: a file that lies on this "
        "machine, prepared once, is read faster.",
        path="nodes.{node}.source",
        change="look",
    ),
    Remedy(
        when="stage",
        bound="data",
        verbs=("prepare",),
        label="Do less for each row",
        reason="`code` is called for every row. Write above `def write` what is the same for all "
        "of them (`PATTERN = re.compile(...)`, a table that is read), and what can be known before "
        "the run into the dataset's own columns.",
        path="nodes.{node}.code",
        change="look",
    ),
)
"""The first that fits is named where none saves more."""
