"""The built-in rewards and their options: one class for each name, then those of packages.

The functions are in the rewards package; a test compares its registry with `BUILTIN_NAMES`. The
last group reads the scores that come in at port `scores` under their node's name.
"""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from coloop.spec.base import (
    Flag,
    NodeId,
    Number,
    Text,
    Whole,
    either,
    problem,
    rising,
    rising_pairs,
    setting,
)
from coloop.spec.installed import records
from coloop.spec.plugins import Builtin, RewardPlugin, only_word
from coloop.spec.regexes import says_no_number

LanguageCode = Literal[
    "en", "zh", "es", "hi", "ar", "pt", "bn", "ru", "ja", "de", "fr", "ko", "vi", "it", "tr",
    "pl", "uk", "nl", "id", "fa", "th", "sv", "cs", "el", "he", "hu", "ro", "fi", "da", "no",
    "ta", "te", "ur", "sw", "ms", "bg", "hr", "sk", "sl", "lt", "lv", "et", "ca", "sr", "tl",
]  # fmt: skip


class TaskReward(Builtin):
    """Score with the checker of the row's task."""

    name: Literal["task"]
    """The task's own checker."""


class ExactMatch(Builtin):
    """1 if the completion equals the answer, otherwise 0; surrounding whitespace is ignored."""

    name: Literal["exact_match"]
    """Whether the completion equals the answer."""
    column: Text = setting("answer", widget="column")
    """Column with the answer."""
    extract: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group: the part of the completion that is compared; the last
    match counts."""


class MathEqual(Builtin):
    """1 if completion and answer are the same number, set or expression, otherwise 0."""

    name: Literal["math_equal"]
    """Whether completion and answer are mathematically equal."""
    column: Text = setting("answer", widget="column")
    """Column with the answer."""
    extract: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group; null: a boxed answer, else the last number."""
    tolerance: Number = setting(1.0e-6, ge=0, level="advanced")
    """Maximum relative difference if the reference answer is a decimal; integers and fractions must
    match exactly."""


class Choice(Builtin):
    """1 if the chosen option is the right one, otherwise 0."""

    name: Literal["choice"]
    """The chosen option is the right one."""
    column: Text = setting("answer", widget="column")
    """Column with the letter of the right option: `B`, `(B)`, `B) Paris`."""
    extract: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group; null: the letter that is boxed or alone on the last line,
    else behind the last "answer is" or "answer:", else the last that stands alone; where two stand
    together (`A or B`), none."""


class CodeTests(Builtin):
    """1 if the completion's program passes the tests of its row, run in sandboxed processes."""

    name: Literal["code_tests"]
    """Whether the program passes its tests."""
    column: Text = setting("tests", widget="column")
    """Column with a list of tests, or JSON of it: `assert f(1) == 2`, `input` and `output` of the
    program, or a function `check(candidate)`, which is called with the row's `entry_point`."""
    extract: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group: the program; null: the last fenced Python block that
    defines what the tests call."""
    graded: Flag = setting(False, level="advanced")
    """Score the share of tests that pass, instead of all or nothing."""
    timeout_seconds: Number = setting(5.0, gt=0, le=600, level="advanced", unit="seconds")
    """Maximum CPU time of one test; the wall-clock limit is four times as long."""
    memory_mib: Whole = setting(512, ge=64, le=1_048_576, level="advanced", unit="MiB")
    """Maximum memory of one program."""


class Format(Builtin):
    """`right` if the text has the required format, otherwise `wrong`."""

    name: Literal["format"]
    """Whether the completion has a format."""
    pattern: Text | None = setting(None, widget="regex")
    """Regular expression that the text must match."""
    shape: Literal["sum", "number", "boxed", "tags", "verdict_per_step", "question_tag"] | None = (
        setting(None)
    )
    """A named format instead of a pattern."""
    right: Number = setting(1.0, level="advanced")
    """Score of a text in this format."""
    wrong: Number = setting(0.0, level="advanced")
    """Score of a text in another format."""
    graded: Flag = setting(False, level="advanced")
    """Texts that partly have the format get a score in between."""

    _has_one = either("pattern", "shape")


class Length(Builtin):
    """1 for texts up to `min` tokens, falling to 0 at `max`."""

    name: Literal["length"]
    """Rewards short texts."""
    min: Whole = setting(0, ge=0, unit="tokens")
    """Up to this length the score is 1."""
    max: Whole = setting(ge=1, unit="tokens")
    """From this length on the score is 0."""
    shape: Literal["linear", "cosine"] = setting("linear", level="advanced")
    """How the score falls."""

    _bounds_rise = rising("min", "max")


class Regex(Builtin):
    """The number that a regular expression matches; without a group: 1 for a match, otherwise 0."""

    name: Literal["regex"]
    """The number that a regular expression matches."""
    pattern: Text = setting(widget="regex")
    """Regular expression; its group, if any, is the number."""
    scale: tuple[Number, Number] | None = setting(None, level="advanced")
    """The number's range, which is scaled to 0 to 1; null: unchanged."""
    on_no_match: Number | None = setting(0.0, level="advanced")
    """Final score of a text without a match; null: none."""

    _bounds_rise = rising_pairs("scale")

    @model_validator(mode="after")
    def _says_numbers(self) -> Self:
        if says_no_number(self.pattern):
            raise problem(
                "bad_value",
                "none of its groups can be a number; write `(?:...)` instead of `(...)` to give a "
                "matching text the score 1",
                field="pattern",
            )
        return self


class JsonSchema(Builtin):
    """1 if the completion is JSON that conforms to a schema."""

    name: Literal["json_schema"]
    """Whether the completion is JSON that conforms to a schema."""
    column: Text | None = setting(None, widget="column", level="advanced")
    """Column with the schema of each row; null: `shape`."""
    shape: dict[str, Any] | None = setting(None, widget="text")
    """The schema; null: any JSON, or that of the column."""


class ReasoningGym(Builtin):
    """The score of reasoning-gym's own verifier, 0 to 1, for rows of the task `reasoning_gym`."""

    name: Literal["reasoning_gym"]
    """Verifiers of reasoning-gym, for rows of its problems."""
    tag: Text | None = setting("answer")
    """The answer is in the last pair of these tags; without them, and with null, the whole text."""


class NgramRepetition(Builtin):
    """0 for a text without repeats, down to `-factor` for one that only repeats itself."""

    name: Literal["ngram_repetition"]
    """Penalizes repetition."""
    size: Whole = setting(3, ge=1)
    """Words per n-gram; characters if the text has no spaces."""
    factor: Number = setting(1.0, ge=0)
    """Maximum penalty."""


class Language(Builtin):
    """The share of the text that is written in a language; a text of a few letters has no score."""

    name: Literal["language"]
    """Share of the completion in a language."""
    language: LanguageCode = setting("en")
    """Code of the language (ISO 639-1)."""


class Overlong(Builtin):
    """0 up to `max - buffer` tokens, then falling to `-factor` at `max`."""

    name: Literal["overlong"]
    """Penalizes texts near the limit."""
    max: Whole = setting(ge=1, unit="tokens")
    """The limit."""
    buffer: Whole = setting(ge=1, unit="tokens")
    """Number of tokens before the limit at which the penalty begins."""
    factor: Number = setting(1.0, ge=0)
    """Penalty at the limit."""

    @model_validator(mode="after")
    def _bounds_rise(self) -> Self:
        if self.buffer > self.max:
            raise problem("bad_value", "must not be greater than `max`", field="buffer")
        return self


class Column(Builtin):
    """A number from a column of the row."""

    name: Literal["column"]
    """A column as score."""
    column: Text = setting(widget="column")
    """Which column; `node.column` is unambiguous."""


class Weighted(Builtin):
    """A weighted sum of the input scores."""

    name: Literal["weighted"]
    """A weighted sum of scores."""
    weights: dict[NodeId, Number] = setting(min_length=1, hot=True, key_reference="node")
    """The weight of each scorer's number."""


class OneMinus(Builtin):
    """1 - score."""

    name: Literal["one_minus"]
    """1 minus the score."""


class Band(Builtin):
    """4 (s - low)(high - s) between the bounds, otherwise 0: highest in the middle."""

    name: Literal["band"]
    """Rewards scores in the middle of a range."""
    low: Number = setting(0.0)
    """Lower bound."""
    high: Number = setting(1.0)
    """Upper bound."""

    _bounds_rise = rising("low", "high")


class Margin(Builtin):
    """How far a score is above the mean of its siblings."""

    name: Literal["margin"]
    """How far the score is above that of its siblings."""


class Agreement(Builtin):
    """1 if two scorers agree, otherwise 0."""

    name: Literal["agreement"]
    """Whether two scorers agree."""
    columns: tuple[NodeId, NodeId] = setting(widget="scorer", title="Scorers")
    """The two scorers."""
    over: Literal["whole", "steps"] = setting("whole", level="advanced")
    """Compare whole texts, or step by step (a missing step counts as disagreement)."""
    tolerance: Number = setting(0.0, ge=0, level="advanced")
    """Maximum difference that still counts as agreement."""


class Gate(Builtin):
    """One score if another is within bounds, otherwise a constant."""

    name: Literal["gate"]
    """A score that depends on a condition."""
    value: NodeId = setting(widget="scorer")
    """The scorer whose score is passed on."""
    by: NodeId = setting(widget="scorer")
    """The scorer whose score is checked."""
    min: Number | None = setting(None)
    """Minimum score of `by` that opens the gate; null: no bound."""
    max: Number | None = setting(None)
    """Maximum score of `by` that opens the gate; null: no bound."""
    otherwise: Number | None = setting(None)
    """Score if the gate is closed; null: none."""

    @model_validator(mode="after")
    def _has_bound(self) -> Self:
        if self.min is None and self.max is None:
            raise problem("missing_field", "set `min`, `max` or both", field="min")
        return self


class First(Builtin):
    """The first available score, in the order of the edges."""

    name: Literal["first"]
    """The first available score."""


class TurnAllocation(Builtin):
    """Score a turn by what it adds to the turns before it."""

    name: Literal["turn_allocation"]
    """What a turn adds."""
    method: Literal["margin", "quality"] = setting("margin")
    """`margin`: the difference from the mean before; `quality`: agreement with it, in both
    directions."""
    alpha: Number = setting(0.5, ge=0)
    """Weight of the added term."""
    beta: Number = setting(0.0, ge=0, level="advanced")
    """Weight of the same node's last score in the conversation."""
    earlier: Literal["ancestors", "all_roles"] = setting("ancestors", level="advanced")
    """The turns before: those of the row's own branch, or those of all roles in earlier rounds."""


class OtherRows(Builtin):
    """The score of another row of the step: the same numbers, without their relation to the texts.
    A control for whether a learner needs its rewards."""

    name: Literal["other_rows"]
    """The score of another row, drawn at random."""


class Constant(Builtin):
    """One number in place of every incoming score."""

    name: Literal["constant"]
    """The same number for every scored row."""
    value: Number = setting(0.5)
    """The number."""


class Coin(Builtin):
    """One of two numbers in place of every incoming score, drawn at random."""

    name: Literal["coin"]
    """One of two numbers, drawn at random."""
    share: Number = setting(0.5, ge=0, le=1)
    """Probability of `high`."""
    low: Number = setting(0.0)
    """The one number."""
    high: Number = setting(1.0)
    """The other number."""


BuiltinSource = Annotated[
    TaskReward
    | ExactMatch
    | MathEqual
    | Choice
    | CodeTests
    | Format
    | Length
    | Regex
    | JsonSchema
    | ReasoningGym
    | NgramRepetition
    | Language
    | Overlong
    | Column
    | Weighted
    | OneMinus
    | Band
    | Margin
    | Agreement
    | Gate
    | First
    | TurnAllocation
    | OtherRows
    | Constant
    | Coin,
    Field(discriminator="name"),
]

_OWN: tuple[type[Builtin], ...] = get_args(get_args(BuiltinSource)[0])
PLUGINS: dict[str, RewardPlugin] = records(
    "coloop.rewards", RewardPlugin, [only_word(reward, "name") for reward in _OWN]
)

if not TYPE_CHECKING and PLUGINS:
    _options = (plugin.options for plugin in PLUGINS.values())
    BuiltinSource = Annotated[reduce(or_, (*_OWN, *_options)), Field(discriminator="name")]

BUILTINS: dict[str, type[Builtin]] = {
    only_word(reward, "name"): reward for reward in get_args(get_args(BuiltinSource)[0])
}
BUILTIN_NAMES: tuple[str, ...] = tuple(BUILTINS)
SCORE_TO_SCORE: frozenset[str] = frozenset(
    {
        *("weighted", "one_minus", "band", "margin", "agreement", "gate", "first"),
        *("turn_allocation", "other_rows", "constant", "coin"),
        *(name for name, plugin in PLUGINS.items() if plugin.needs == "scores"),
    }
)
