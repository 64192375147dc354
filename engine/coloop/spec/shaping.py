"""Rows between the writers: what templates parse and filters keep, and how pairs are labelled."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from coloop.spec.base import (
    Count,
    Flag,
    Name,
    NodeId,
    Number,
    OneOrMany,
    PlainOr,
    Section,
    Text,
    Whole,
    either,
    setting,
)

KEEP_SIGNATURE = '''def keep(**columns):
    """Whether to keep a row; `columns` has its columns."""
    return True
'''
WRITE_SIGNATURE = '''def write(prompt, **columns):
    """New columns of a row, or None to drop it; its other columns are in `columns`."""
    return {"prompt": prompt}
'''


class ParseRegex(Section, title="regex with options"):
    """A column out of a regular expression."""

    regex: Text = setting(widget="regex")
    """Regular expression with one group; the last match counts."""
    all: Flag = setting(False, level="advanced")
    """Give the list of all matches."""


class ParseJson(Section, title="JSON path"):
    """A column out of JSON in the text."""

    json_path: Text = setting(alias="json")
    """Keys joined by dots, e.g. `answer.value`; the last JSON value counts."""
    all: Flag = setting(False, level="advanced")
    """Give the list of all matches."""


class ParseTag(Section, title="tag"):
    """A column out of a tag in the text."""

    tag: Name = setting()
    """Name of the tag, without brackets; the last one counts."""
    all: Flag = setting(False, level="advanced")
    """Give the list of all matches."""


def _parse_shape(value: Any) -> str:
    if isinstance(value, str):
        return "<pattern>"
    if isinstance(value, ParseJson) or (isinstance(value, dict) and "json" in value):
        return "<json>"
    if isinstance(value, ParseTag) or (isinstance(value, dict) and "tag" in value):
        return "<tag>"
    return "<regex>"


Parse = Annotated[
    Annotated[Text, Tag("<pattern>"), Field(title="regex")]
    | Annotated[ParseRegex, Tag("<regex>")]
    | Annotated[ParseJson, Tag("<json>")]
    | Annotated[ParseTag, Tag("<tag>")],
    Discriminator(_parse_shape),
]
"""A regular expression with one group, `{json: path}` or `{tag: name}`."""


RuleScorer = Annotated[
    NodeId | None,
    setting(
        widget="node",
        level="advanced",
        description="A scorer at port `by`; null: the one at `scores`.",
    ),
]
RuleGroups = Annotated[
    OneOrMany[Name] | None,
    setting(
        level="advanced",
        choices="groupings",
        reference="node",
        description="What rows of a group share, as `credit.group_by`; null: their prompt row.",
    ),
]


class AccuracyBand(Section):
    """Keep groups whose share of right rows lies in a band."""

    rule: Literal["accuracy_band"]
    """Groups whose share of right rows lies in a band."""
    of: RuleScorer = None
    by: RuleGroups = None
    min: Number = setting(0.0, ge=0, le=1, hot=True)
    """Least share."""
    max: Number = setting(1.0, ge=0, le=1, hot=True)
    """Greatest share."""
    open: Flag = setting(False, level="advanced")
    """The bounds themselves are out."""
    right_at: Number = setting(1.0, level="advanced")
    """A score from here on counts as right."""


class NonzeroVariance(Section):
    """Keep groups whose scores differ."""

    rule: Literal["nonzero_variance"]
    """Groups whose scores differ."""
    of: RuleScorer = None
    by: RuleGroups = None


class GroupMean(Section):
    """Keep groups by their mean score."""

    rule: Literal["group_mean"]
    """Groups by their mean score."""
    of: RuleScorer = None
    by: RuleGroups = None
    min: Number | None = setting(None, hot=True)
    """Least mean."""
    max: Number | None = setting(None, hot=True)
    """Greatest mean."""


class ScoreRule(Section):
    """Keep rows by their score."""

    rule: Literal["score"]
    """Rows by their score; a row without one is cut."""
    of: RuleScorer = None
    min: Number | None = setting(None, hot=True)
    """Least score."""
    max: Number | None = setting(None, hot=True)
    """Greatest score."""


class LengthRule(Section):
    """Keep rows by the length of a column."""

    rule: Literal["length"]
    """Rows by the length of a column: tokens of a completion, else characters or items."""
    column: Text = setting("completion", widget="column")
    """The column."""
    min: Whole | None = setting(None, ge=0, hot=True)
    """Least length."""
    max: Whole | None = setting(None, ge=0, hot=True)
    """Greatest length."""


class RegexRule(Section):
    """Keep rows whose column matches."""

    rule: Literal["regex"]
    """Rows whose column matches a regular expression somewhere."""
    column: Text = setting("completion", widget="column")
    """The column."""
    pattern: Text = setting(widget="regex")
    """The regular expression."""


class UniqueRule(Section):
    """Keep the first row of each value."""

    rule: Literal["unique"]
    """The first row of each value of a column."""
    column: Text = setting("prompt", widget="column")
    """The column."""


class PythonRule(Section):
    """Keep rows that a Python function keeps."""

    rule: Literal["python"]
    """Rows that a Python function keeps, run in a limited process of its own; it is asked only
    about rows that the rules before it keep."""
    code: Text = setting(widget="code", starter=KEEP_SIGNATURE)
    """Source with `def keep(**columns) -> bool`."""


Rule = Annotated[
    AccuracyBand
    | NonzeroVariance
    | GroupMean
    | ScoreRule
    | LengthRule
    | RegexRule
    | UniqueRule
    | PythonRule,
    Field(discriminator="rule"),
]
GROUP_RULES = frozenset({"accuracy_band", "nonzero_variance", "group_mean"})
"""Rules that keep or cut whole groups."""


class PerGroup(Section):
    """At most so many rows of each group."""

    by: OneOrMany[Text] | None = setting(
        None, level="advanced", choices="groupings", reference="node"
    )
    """What rows of a group share: a column, or as `credit.group_by`; null: their prompt row."""
    max: Whole = setting(1, ge=1, hot=True, unit="rows")
    """Most rows of a group."""
    pick: Literal["random", "first", "best", "worst", "longest"] = setting("random")
    """Which rows stay."""


def _groups_shape(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<number>"


Groups = Annotated[
    Annotated[Count, Tag("<number>")] | Annotated[Literal["all"], Tag("<word>")],
    Discriminator(_groups_shape),
]


class Fill(Section):
    """Run the stages before the filter again until it has enough."""

    groups: Groups | None = setting(None)
    """Groups to have; `all`: one for each row at the input of `from`."""
    rows: Whole | None = setting(None, ge=1, hot=True)
    """Rows to have, in place of groups."""
    max_rounds: Whole = setting(10, ge=1, le=1000, hot=True)
    """Most passes, the first one counted; then it goes on with what it has."""
    from_: NodeId | None = setting(None, alias="from", level="advanced", widget="node")
    """Where a pass begins; null: the nearest dataset or buffer."""
    surplus: Literal["drop", "keep"] = setting("drop", level="advanced")
    """What becomes of more than was asked for."""

    _has_one = either("groups", "rows")


class Resample(Section):
    """Draw rows again with replacement."""

    weight: Literal["power", "max_min", "max_random"] = setting("power")
    """How scores weigh: their size to a power, or best and worst, or best and a random one."""
    exponent: Number = setting(2.0, ge=0, level="advanced", hot=True)
    """Power of the score's size."""
    rows: Whole | None = setting(None, ge=1, level="advanced")
    """Rows to draw; null: as many as came in."""


class SoftLabels(Section, title="with a scale"):
    """Keep a preference as a probability."""

    scale: Number = setting(1.0, gt=0, hot=True)
    """From scores: sigmoid(scale * difference)."""


class SideColumns(Section):
    """Which text each side of a pair brings."""

    chosen: Text | None = setting(None, widget="column")
    """Column of the chosen side; null: `completion`, else `target`."""
    rejected: Text | None = setting(None, widget="column")
    """Column of the rejected side; null: `completion`, else `target`."""


Soft = PlainOr[Flag, SoftLabels]
