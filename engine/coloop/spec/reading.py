"""How a judge is asked and how its answer becomes a score: `template` and `read`."""

from __future__ import annotations

from typing import Literal

from coloop.spec.base import Number, Section, Text, either, rising_pairs, setting


class Message(Section):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"] = setting("user")
    """Who speaks."""
    content: Text = setting(widget="text", reference="template")
    """What is said, in Jinja."""


class PromptTemplate(Section):
    """The text that a judge, a scorer or a model tool reads."""

    text: Text | None = setting(None, widget="text", reference="template")
    """One text, in Jinja over the columns of the row."""
    messages: tuple[Message, ...] | None = setting(None, level="advanced")
    """A chat instead of one text."""

    _has_one = either("text", "messages")


class Read(Section):
    """How text or numbers become scores."""

    granularity: Literal["sequence", "step", "token"] = setting("sequence")
    """One score a row, or one a step or token of the judged text."""
    step_separator: Text = setting("\n", level="advanced")
    """What ends a step."""
    verdict: Text | None = setting(None, widget="regex")
    """Regular expression with one group: the verdict word of the whole."""
    step_verdicts: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with two groups: number of the step and its verdict word."""
    step_scale: Literal["none", "per_step_count"] = setting("none", level="advanced")
    """`per_step_count`: a step pays 1/K of its value, for K steps."""
    number: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group: the score itself."""
    numbers: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with two groups: index and score (with `join: gather` and `per: row`)."""
    scale: tuple[Number, Number] | None = setting(None, level="advanced")
    """The range of `number`, brought onto 0 to 1; null: as read."""
    values: dict[Text, Number] | None = setting(None)
    """What each verdict word is worth."""
    range: tuple[Number, Number] | None = setting(None, level="advanced")
    """Least and greatest score, so that a pair's score can be turned over."""
    labels: tuple[Text, ...] | None = setting(None, level="advanced")
    """Words whose probabilities are compared; the score is that of the first. Of two, a label of 1
    teaches the first."""
    score: Literal["text", "probability"] = setting("text", level="advanced")
    """Read what was written, or the probability of the first label at the verdict."""
    threshold: Number | None = setting(None, level="advanced")
    """Scores from here on become 1, others 0; null: as they are."""
    clamp: tuple[Number, Number] | None = setting(None, level="advanced")
    """Bounds of the score."""
    on_no_match: Number | None = setting(None, level="advanced")
    """Score of a text in which nothing is found; null: it has none."""
    order: Literal["random", "given", "both"] = setting("random", level="advanced")
    """Order of the sides of a pair as `a` and `b`; `both` asks twice."""
    reduce: Literal["min", "product", "last", "mean"] | None = setting(None, level="advanced")
    """How step scores become one; null: `mean` where one is asked for."""
    beta: Number = setting(0.05, gt=0, level="advanced", hot=True)
    """Implicit PRM: scale of the log ratio."""
    normalise: Literal["none", "max_cumulative", "running"] = setting("none", level="advanced")
    """Implicit PRM: how the scores are brought to scale."""
    activation: Literal["none", "sigmoid"] = setting("none", level="advanced")
    """What the head's number goes through."""

    _bounds_rise = rising_pairs("scale", "range", "clamp")
