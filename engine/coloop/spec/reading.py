"""How a judge is asked and how its answer becomes a score: `template` and `read`."""

from typing import Literal, Self

from pydantic import model_validator

from coloop.spec.base import (
    Flag,
    Name,
    Number,
    Section,
    Text,
    either,
    problem,
    rising_pairs,
    setting,
)


class Message(Section):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"] = setting("user")
    """Role of the sender."""
    content: Text = setting(widget="text", reference="template")
    """Content of the message, in Jinja."""


class PromptTemplate(Section):
    """The text that a judge, a scorer or a model tool reads."""

    text: Text | None = setting(None, widget="text", reference="template")
    """One text, in Jinja over the columns of the row."""
    messages: tuple[Message, ...] | None = setting(None, level="advanced")
    """A chat instead of one text."""

    _has_one = either("text", "messages")


class Criterion(Section):
    """One criterion of a rubric."""

    name: Name = setting()
    """Its name, under which a JSON answer and the samples have its score."""
    text: Text = setting(widget="text")
    """What is judged, in words."""
    weight: Number = setting(1.0)
    """Its weight in the score; negative for a flaw."""


class Read(Section):
    """How text or numbers become scores."""

    granularity: Literal["sequence", "step", "token"] = setting("sequence")
    """One score per row, or one per step or token of the judged text."""
    step_separator: Text = setting("\n", level="advanced")
    """Text that ends a step."""
    verdict: Text | None = setting(None, widget="regex")
    """Regular expression with one group: the verdict on the whole text."""
    step_verdicts: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with two groups: the number of a step and the verdict on it."""
    step_scale: Literal["none", "per_step_count"] = setting("none", level="advanced")
    """`per_step_count`: each of K steps counts 1/K of its value."""
    number: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with one group: the score itself."""
    numbers: Text | None = setting(None, level="advanced", widget="regex")
    """Regular expression with two groups: index and score (with `join: gather` and `per: row`)."""
    json_path: Text | None = setting(None, alias="json", level="advanced")
    """Keys joined by dots of a JSON answer, e.g. `score`: a number, a verdict word, or with
    `per: row` a list of these. The last JSON value of the text counts."""
    rubric: tuple[Criterion, ...] | None = setting(None)
    """Criteria, each with a score of its own: the score of the row is their weighted sum, divided
    by the sum of the positive weights. The template shows them as `criteria`, or one as
    `criterion`."""
    ask: Literal["together", "one_by_one"] = setting("together", level="advanced")
    """Rubric: all criteria in one JSON answer, or a request for each."""
    ranking: Flag = setting(False, level="advanced")
    """With `per: row`: the answer lists the numbers of the rows, the best first. Their scores fall
    from 1 to 0 in equal steps."""
    scale: tuple[Number, Number] | None = setting(None, level="advanced")
    """The range of a number that is read, which is scaled to 0 to 1; null: unchanged."""
    values: dict[Text, Number] | None = setting(None)
    """Score of each verdict word."""
    range: tuple[Number, Number] | None = setting(None, level="advanced")
    """Minimum and maximum score, so that the score of a pair in swapped order can be inverted."""
    labels: tuple[Text, ...] | None = setting(None, level="advanced")
    """Words whose probabilities are compared; the score is the probability of the first. With two
    words, a label of 1 stands for the first."""
    score: Literal["text", "probability"] = setting("text", level="advanced")
    """Read the generated text, or the probability of the first label at the verdict."""
    threshold: Number | None = setting(None, level="advanced")
    """Scores at or above this become 1, others 0; null: unchanged."""
    clamp: tuple[Number, Number] | None = setting(None, level="advanced")
    """Bounds of the score."""
    on_no_match: Number | None = setting(None, level="advanced")
    """Score of a text without a match; null: none."""
    order: Literal["random", "given", "both"] = setting("random", level="advanced")
    """Order of the sides of a pair as `a` and `b`; `both` judges both orders."""
    reduce: Literal["min", "product", "last", "mean"] | None = setting(None, level="advanced")
    """How step scores are combined into one; null: `mean`, where one is needed."""
    beta: Number = setting(0.05, gt=0, level="advanced", hot=True)
    """Implicit PRM: scale of the log ratio."""
    normalise: Literal["none", "max_cumulative", "running"] = setting("none", level="advanced")
    """Implicit PRM: how scores are normalized."""
    activation: Literal["none", "sigmoid"] = setting("none", level="advanced")
    """Activation applied to the head's output."""

    _bounds_rise = rising_pairs("scale", "range", "clamp")

    @model_validator(mode="after")
    def _has_a_rubric(self) -> Self:
        names = [criterion.name for criterion in self.rubric or ()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise problem("bad_value", f"has two criteria named `{twice}`", field="rubric")
        if self.rubric is not None and not any(one.weight > 0 for one in self.rubric):
            raise problem("bad_value", "needs a criterion with a positive weight", field="rubric")
        return self
