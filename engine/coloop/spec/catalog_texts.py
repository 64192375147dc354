"""Words and looks of the catalog: the palette, forms, port types, what shortens a step, charts.

The catalog joins them with ports and schemas, and with what kinds and algorithms say of themselves.
Icons are names of lucide, colours are names of CSS variables of the page.
"""

from functools import partial

from coloop.spec.catalog_types import ChartInfo, FormSectionInfo, GroupInfo, RemedyInfo
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import NodeKind

GROUPS: dict[str, GroupInfo] = {
    name: GroupInfo(name=name, title=title, color=f"--group-{name}")
    for name, title in (
        ("data", "Data"),
        ("models", "Models"),
        ("scores", "Scores"),
        ("shaping", "Shaping"),
        ("tools", "Tools and search"),
        ("measuring", "Measuring"),
    )
}
"""Sections of the palette, in order."""

FORM_SECTIONS: tuple[FormSectionInfo, ...] = (
    FormSectionInfo(name="model", title="Model", opens=False),
    FormSectionInfo(name="reading", title="Reading", opens=False),
    FormSectionInfo(name="generation", title="Generation", opens=True),
    FormSectionInfo(name="learning", title="Learning", opens=True),
    FormSectionInfo(name="placement", title="Placement", opens=False),
    FormSectionInfo(name="checkpoint", title="Checkpoint", opens=False),
    FormSectionInfo(name="note", title="Note", opens=False),
)
"""Parts of a form, in order."""

KIND_TEXTS: dict[str, NodeKind] = {
    kind: node.about
    for group in GROUPS
    for kind, node in NODE_CLASSES.items()
    if node.about.group == group
}
"""The kinds, in the order of the palette."""

PORT_TEXTS: dict[str, tuple[str, str, str]] = {
    "Rows": (
        "--port-rows",
        "square",
        "A table of rows with columns such as `prompt` and `answer`.",
    ),
    "Rollouts": (
        "--port-rollouts",
        "circle",
        "Rows that a policy wrote, with tokens and log-probs; accepted wherever rows are.",
    ),
    "Pairs": ("--port-pairs", "pentagon", "Rows with a chosen and a rejected side."),
    "Scores": ("--port-scores", "diamond", "One number a row, or numbers at its steps or tokens."),
    "LogProbs": ("--port-log-probs", "triangle", "One log-prob for each token of a row."),
    "Values": ("--port-values", "hexagon", "One value for each token of a row."),
    "Policy": (
        "--port-policy",
        "ring",
        "A handle: the node at the other end calls this one to generate.",
    ),
    "Check": (
        "--port-check",
        "ring",
        "A handle: the node at the other end requests scores from this one.",
    ),
    "Tool": ("--port-tool", "ring", "A handle: a tool that a policy may call while it generates."),
}
"""By port type: color, shape and help."""

# What shortens a step where a run waits for itself.
#
# A stage that takes `s` of a step's `T` seconds leaves `T - saved * s`. What is saved follows from
# the change: less of something saves the share that is left out, more at once the share that is no
# longer waited for, one pass fewer its own share. Where no field is known to help, the one to look
# at is named, and nothing is promised.

_remedy = partial(
    RemedyInfo, when="stage", verbs=[], amount=0, only=None, saves=0.0, metric=None, reach=0.0
)
REMEDIES: tuple[RemedyInfo, ...] = (
    _remedy(
        when="pools_wait",
        bound="late rows",
        label="Generate a step ahead",
        reason="The pools wait for each other. With rows that may be one step late "
        "(`schedule.max_staleness: 1`) a step takes as long as its busiest pool.",
        path="schedule.max_staleness",
        change="becomes",
        amount=1,
    ),
    _remedy(
        bound="writing",
        verbs=["generate"],
        label="Generate shorter texts",
        reason=(
            "Texts are nearly as long as the limit. With three quarters of "
            "`rollout.max_new_tokens` generation takes three quarters of the time; longer texts "
            "are cut."
        ),
        path="nodes.{node}.rollout.max_new_tokens",
        change="times",
        amount=0.75,
        metric="rollout/length",
        reach=0.75,
    ),
    _remedy(
        bound="judging",
        verbs=["score"],
        label="Judge in fewer words",
        reason=(
            "Verdicts are nearly as long as the limit. With three quarters of "
            "`rollout.max_new_tokens` judging takes three quarters of the time; longer verdicts "
            "are cut."
        ),
        path="nodes.{node}.rollout.max_new_tokens",
        change="times",
        amount=0.75,
        metric="rollout/length",
        reach=0.75,
    ),
    _remedy(
        bound="judging",
        verbs=["score"],
        label="Double the number of concurrent requests",
        reason=(
            "`source.concurrency` limits the concurrent requests to the service; doubling it "
            "halves the waiting time if the service keeps up."
        ),
        path="nodes.{node}.source.concurrency",
        change="times",
        amount=2,
    ),
    _remedy(
        bound="judging",
        verbs=["score"],
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
    _remedy(
        bound="judging",
        verbs=["score"],
        label="Check the reward",
        reason="`source` takes this time for each row; no setting shortens it.",
        path="nodes.{node}.source",
        change="look",
    ),
    _remedy(
        bound="learning",
        verbs=["learn"],
        label="Keep the activations",
        reason=(
            "Activations are computed twice, which is a quarter of the work of learning. Turning "
            "`training.gradient_checkpointing` off saves that if there is enough memory."
        ),
        path="nodes.{node}.training.gradient_checkpointing",
        change="becomes",
        amount=False,
        only=True,
        saves=0.25,
    ),
    _remedy(
        bound="learning",
        verbs=["learn"],
        label="One pass fewer",
        reason=(
            "The rows of a step are learned several times (`training.epochs`); fewer passes take "
            "less time."
        ),
        path="nodes.{node}.training.epochs",
        change="less",
        amount=1,
    ),
    _remedy(
        bound="data",
        verbs=["load", "read", "write"],
        label="Check the data",
        reason=(
            "Reading the rows (`source`) takes the time: a local file, prepared once, is faster."
        ),
        path="nodes.{node}.source",
        change="look",
    ),
    _remedy(
        bound="data",
        verbs=["prepare"],
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

# The charts that a run opens with: which metrics stand together, and for which learning.
#
# A chart is shown where one of its metrics was reported, and where a node of the loop learns at one
# of its ports. Metrics of evaluations count by their own name, whatever stands before it.

_chart = partial(ChartInfo, ports=[])
CHARTS: tuple[ChartInfo, ...] = (
    _chart(
        name="accuracy",
        title="Accuracy",
        metrics=["accuracy", "score", "agreement", "pair_accuracy", "label_accuracy"],
    ),
    _chart(name="reward", title="Reward", metrics=["reward/mean"], ports=["rewards"]),
    _chart(
        name="loss",
        title="Loss",
        metrics=["loss/demonstrations", "loss/pairs", "loss/labels", "loss/returns"],
        ports=["demonstrations", "pairs", "labels", "returns"],
    ),
    _chart(name="kl", title="KL to the reference", metrics=["kl"], ports=["rewards"]),
    _chart(name="length", title="Length", metrics=["rollout/length"], ports=["rewards"]),
    _chart(
        name="recall",
        title="Recall and false verdicts",
        metrics=["class_recall", "false_positive_rate", "false_negative_rate"],
    ),
    _chart(name="entropy", title="Entropy", metrics=["entropy"], ports=["rewards"]),
    _chart(
        name="margin",
        title="Chosen and rejected",
        metrics=["margin", "log_ratio/chosen", "log_ratio/rejected"],
        ports=["pairs"],
    ),
    _chart(
        name="explained",
        title="Explained variance",
        metrics=["explained_variance"],
        ports=["returns"],
    ),
    _chart(name="clip", title="Clip share", metrics=["clip_fraction"], ports=["rewards"]),
    _chart(
        name="groups",
        title="Groups without variance",
        metrics=["group/zero_variance"],
        ports=["rewards"],
    ),
    _chart(
        name="calibration", title="Calibration", metrics=["calibration", "brier"], ports=["labels"]
    ),
)
