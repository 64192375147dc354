"""What this package adds to the language. Loaded with it, so nothing heavy is imported here."""

from typing import Literal

from coloop.spec.plugins import (
    AdvantageRecord,
    AlgorithmPlugin,
    AlgorithmRecord,
    Builtin,
    Range,
    RewardPlugin,
    Task,
    TaskPlugin,
    Text,
    ToolPlugin,
    setting,
)


class LetterShare(Builtin):
    """The share of the completion's characters that are among some letters."""

    name: Literal["letter_share"]
    """Rewards the share of chosen letters."""
    letters: Text = setting("aeiou")
    """The letters that count."""


class BackwardsTask(Task):
    """A word of letters, to be written backwards."""

    task: Literal["backwards"]
    """Write a word backwards."""
    length: Range = setting(3, hot=True, span=(2, 6))
    """Letters of a word."""


LETTER_SHARE = RewardPlugin(options=LetterShare, score="coloop_example.rewards:letter_share")

BACKWARDS = TaskPlugin(
    parameters=BackwardsTask,
    task="coloop_example.tasks:BACKWARDS",
    columns=("prompt", "answer", "target"),
)

MEDIAN_BASELINE = AlgorithmPlugin(
    algorithm=AlgorithmRecord(
        name="median_baseline",
        title="Median baseline",
        help="Compares answers with the median of their group, which one outlier does not move.",
        formula="A = r - median(group); clipped loss",
        fields="rewards",
        recipe="policy",
        preset={"advantage": "group_median"},
    ),
    advantage=AdvantageRecord(
        name="group_median",
        needs="group",
        formula="r_i - median(group)",
        note="Better or worse than the group's median.",
    ),
    estimator="coloop_example.algorithms:group_median",
)

REVERSER = ToolPlugin(
    name="reverser",
    tool="coloop_example.tools:Reverser",
    call="<reverse>(?P<text>.*?)</reverse>",
    argument="text",
)
