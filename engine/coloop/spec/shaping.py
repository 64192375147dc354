"""Rows between the writers: what templates parse and filters keep, and how pairs are labelled."""

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
    """A column extracted by a regular expression."""

    regex: Text = setting(widget="regex")
    """Regular expression with one group; the last match counts."""
    all: Flag = setting(False, level="advanced")
    """Return all matches as a list."""


class ParseJson(Section, title="JSON path"):
    """A column extracted from JSON in the text."""

    json_path: Text = setting(alias="json")
    """Keys joined by dots, e.g. `answer.value`; the last JSON value counts."""
    all: Flag = setting(False, level="advanced")
    """Return all matches as a list."""


class ParseTag(Section, title="tag"):
    """A column extracted from a tag in the text."""

    tag: Name = setting()
    """Name of the tag, without brackets; the last one counts."""
    all: Flag = setting(False, level="advanced")
    """Return all matches as a list."""


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
        widget="scorer",
        level="advanced",
        description="A scorer connected to port `by`; null: the one connected to `scores`.",
    ),
]
RuleGroups = Annotated[
    OneOrMany[Name] | None,
    setting(
        level="advanced",
        choices="groupings",
        reference="node",
        description="What the rows of a group have in common, as in `credit.group_by`; "
        "null: their prompt row.",
    ),
]


class AccuracyBand(Section):
    """Keep groups whose share of correct rows is within bounds."""

    rule: Literal["accuracy_band"]
    """Groups whose share of correct rows is within bounds."""
    of: RuleScorer = None
    by: RuleGroups = None
    min: Number = setting(0.0, ge=0, le=1, hot=True)
    """Minimum share."""
    max: Number = setting(1.0, ge=0, le=1, hot=True)
    """Maximum share."""
    open: Flag = setting(False, level="advanced")
    """Exclude the bounds themselves."""
    right_at: Number = setting(1.0, level="advanced")
    """Scores at or above this value count as correct."""


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
    """Minimum mean."""
    max: Number | None = setting(None, hot=True)
    """Maximum mean."""


class ScoreRule(Section):
    """Keep rows by their score."""

    rule: Literal["score"]
    """Rows by their score; a row without one is dropped."""
    of: RuleScorer = None
    min: Number | None = setting(None, hot=True)
    """Minimum score."""
    max: Number | None = setting(None, hot=True)
    """Maximum score."""


class LengthRule(Section):
    """Keep rows by the length of a column."""

    rule: Literal["length"]
    """Rows by the length of a column: tokens of a completion, else characters or items."""
    column: Text = setting("completion", widget="column")
    """The column."""
    min: Whole | None = setting(None, ge=0, hot=True)
    """Minimum length."""
    max: Whole | None = setting(None, ge=0, hot=True)
    """Maximum length."""


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
    """Keep rows for which a Python function returns true."""

    rule: Literal["python"]
    """Rows for which a Python function returns true. It runs in its own sandboxed process and is
    called only for rows that the rules before it keep."""
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
    """At most this many rows per group."""

    by: OneOrMany[Text] | None = setting(
        None, level="advanced", choices="groupings", reference="node"
    )
    """What the rows of a group have in common: a column, or as in `credit.group_by`; null: their
    prompt row."""
    max: Whole = setting(1, ge=1, hot=True, unit="rows")
    """Maximum rows per group."""
    pick: Literal["random", "first", "best", "worst", "longest"] = setting("random")
    """Which rows are kept."""


Groups = Annotated[
    Annotated[Count, Tag("<number>")] | Annotated[Literal["all"], Tag("<word>")],
    Discriminator(lambda value: "<word>" if isinstance(value, str) else "<number>"),
]


class Fill(Section):
    """Run the stages before the filter again until enough rows pass."""

    groups: Groups | None = setting(None)
    """Number of groups to collect; `all`: one for each input row of `from`."""
    rows: Whole | None = setting(None, ge=1, hot=True)
    """Number of rows to collect, instead of groups."""
    max_rounds: Whole = setting(10, ge=1, le=1000, hot=True)
    """Maximum number of passes, including the first; after that it continues with what it has."""
    from_: NodeId | None = setting(None, alias="from", level="advanced", widget="node")
    """Node at which a pass starts; null: the nearest dataset or buffer."""
    surplus: Literal["drop", "keep"] = setting("drop", level="advanced")
    """What happens to rows beyond the requested number."""

    _has_one = either("groups", "rows")


class Resample(Section):
    """Resample rows with replacement."""

    weight: Literal["power", "max_min", "max_random"] = setting("power")
    """How scores weight rows: by magnitude to a power, best and worst, or best and a random one."""
    exponent: Number = setting(2.0, ge=0, level="advanced", hot=True)
    """Exponent of the score's magnitude."""
    rows: Whole | None = setting(None, ge=1, level="advanced")
    """Rows to draw; null: as many as came in."""


class SoftLabels(Section, title="with a scale"):
    """Keep a preference as a probability."""

    scale: Number = setting(1.0, gt=0, hot=True)
    """From scores: sigmoid(scale * difference)."""


class SideColumns(Section):
    """Which text each side of a pair uses."""

    chosen: Text | None = setting(None, widget="column")
    """Column of the chosen side; null: `completion`, else `target`."""
    rejected: Text | None = setting(None, widget="column")
    """Column of the rejected side; null: `completion`, else `target`."""


Soft = PlainOr[Flag, SoftLabels]
