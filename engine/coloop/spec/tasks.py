"""The built-in procedural tasks as sources of a dataset: their names and parameters.

One class for each task; `data/tasks` makes the rows and checks them. All parameters are hot: a
phase may make problems harder. A range parameter is a number or `[least, greatest]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from pydantic import Field

from coloop.spec.base import Flag, Number, Range, Whole, setting
from coloop.spec.installed import records
from coloop.spec.plugins import Task, TaskPlugin


class ArithmeticTask(Task):
    """Sums, differences, products: `12+34=` and its answer."""

    task: Literal["arithmetic"]
    """Sums, differences, products."""
    digits: Range = setting(2, hot=True, span=(1, 9))
    """Digits of each operand."""
    operations: tuple[Literal["+", "-", "*"], ...] = setting(("+",), hot=True, min_length=1)
    """Which operations are drawn."""
    operands: Range = setting(2, hot=True, span=(2, 5), level="advanced")
    """Numbers in one problem."""
    reverse: Flag = setting(False, hot=True, level="advanced")
    """Write the answer least significant digit first, which small models learn faster."""
    part: Literal["judged"] | None = setting(None, level="advanced", hot=True)
    """`judged`: answers of mixed quality with a `label`."""


class CountdownTask(Task):
    """Reach a target with given numbers: an expression is the answer."""

    task: Literal["countdown"]
    """Reach a target with given numbers."""
    numbers: Range = setting(3, hot=True, span=(2, 6))
    """How many numbers are given."""
    maximum: Whole = setting(20, ge=2, le=1000, hot=True)
    """Largest given number."""
    operations: tuple[Literal["+", "-", "*"], ...] = setting(("+", "-"), hot=True, min_length=1)
    """Operations that a solution may use."""


class SortingTask(Task):
    """Put symbols in order."""

    task: Literal["sorting"]
    """Put symbols in order."""
    length: Range = setting((3, 6), hot=True, span=(2, 12))
    """Symbols in one problem."""
    symbols: Literal["digits", "letters"] = setting("digits", hot=True)
    """What is sorted."""


class LastLetterTask(Task):
    """Chain the last letters of words, with the gold steps in `steps`."""

    task: Literal["last_letter"]
    """Chain the last letters of words."""
    words: Range = setting((2, 4), hot=True, span=(1, 8))
    """Words in one problem."""


class KnightsTask(Task):
    """Knights tell the truth, knaves lie: who is who?"""

    task: Literal["knights"]
    """Knights and knaves."""
    people: Range = setting(2, hot=True, span=(2, 5))
    """People in one puzzle."""


class CountingTask(Task):
    """Count a letter in a word."""

    task: Literal["counting"]
    """Count a letter in a word."""
    length: Range = setting((4, 8), hot=True, span=(2, 16))
    """Letters of the word."""


class CalculatorTask(Task):
    """Longer arithmetic, made to be solved with a calculator."""

    task: Literal["calculator"]
    """Longer arithmetic, made to be solved with a calculator."""
    digits: Range = setting((2, 4), hot=True, span=(1, 9))
    """Digits of each operand."""
    part: Literal["traces"] | None = setting(None, hot=True)
    """`traces`: worked solutions with calls in them."""


class KnowledgeTask(Task):
    """Questions over a made-up world, answered by looking up facts."""

    task: Literal["knowledge"]
    """Questions over a made-up world."""
    hops: Range = setting((1, 2), hot=True, span=(1, 4))
    """Facts that one answer needs."""
    noise: Whole = setting(0, ge=0, hot=True)
    """Irrelevant documents per relevant one."""
    part: Literal["documents"] | None = setting(None, hot=True)
    """`documents`: the facts themselves."""


class ProofTask(Task):
    """Statements of a small rewriting system."""

    task: Literal["proof"]
    """Statements of a small rewriting system."""
    depth: Range = setting((1, 4), hot=True, span=(1, 6))
    """Steps of a shortest proof."""
    part: Literal["tactics", "target_variants"] | None = setting(None, hot=True)
    """`tactics`: proof steps to train on; `target_variants`: easier variants of hard statements."""


class PreferenceTask(Task):
    """Texts with a checkable property, and pairs of better and worse."""

    task: Literal["preference"]
    """Texts with a checkable property, and pairs of better and worse."""
    length: Range = setting((4, 8), hot=True, span=(2, 9))
    """Symbols of a text."""
    noise: Number = setting(0.0, ge=0, le=0.5, hot=True)
    """Share of pairs with swapped labels."""
    part: (
        Literal[
            "instructions",
            "judgements",
            "ranked",
            "unlabelled",
            "red_team",
            "helpful",
            "helpful_pairs",
        ]
        | None
    ) = setting(None, hot=True)
    """Another table of the same task."""


class ReadDebateTask(Task):
    """A passage that only the debaters may read, a question, and two answers."""

    task: Literal["read_debate"]
    """A passage that only the debaters may read, a question, and two answers."""
    facts: Range = setting((3, 6), hot=True, span=(2, 12))
    """Facts in the passage."""


class TwoHalvesTask(Task):
    """One answer written by two agents, one half each."""

    task: Literal["two_halves"]
    """One answer written by two agents, one half each."""
    digits: Range = setting(2, hot=True, span=(1, 6))
    """Digits of each operand."""


class ImagesTask(Task):
    """Small one-bit figures with captions and questions."""

    task: Literal["images"]
    """Small one-bit figures with captions and questions."""
    pixels: Whole = setting(8, ge=4, le=64, hot=True)
    """Length of an edge in pixels."""
    part: Literal["items"] | None = setting(None, hot=True)
    """`items`: questions with options and answers."""


TaskSource = Annotated[
    ArithmeticTask
    | CountdownTask
    | SortingTask
    | LastLetterTask
    | KnightsTask
    | CountingTask
    | CalculatorTask
    | KnowledgeTask
    | ProofTask
    | PreferenceTask
    | ReadDebateTask
    | TwoHalvesTask
    | ImagesTask,
    Field(discriminator="task"),
]


_OWN: tuple[type[Task], ...] = get_args(get_args(TaskSource)[0])
PLUGINS: dict[str, TaskPlugin] = records(
    "coloop.tasks", TaskPlugin, [get_args(c.model_fields["task"].annotation)[0] for c in _OWN]
)
"""Tasks of installed packages."""

if not TYPE_CHECKING and PLUGINS:
    _parameters = (plugin.parameters for plugin in PLUGINS.values())
    TaskSource = Annotated[reduce(or_, (*_OWN, *_parameters)), Field(discriminator="task")]

TASK_COLUMNS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("arithmetic", None): ("prompt", "answer", "target"),
    ("arithmetic", "judged"): ("prompt", "answer", "target", "completion", "label"),
    ("countdown", None): ("prompt", "answer", "target", "numbers", "goal"),
    ("sorting", None): ("prompt", "answer", "target"),
    ("last_letter", None): ("prompt", "answer", "target", "steps"),
    ("knights", None): ("prompt", "answer", "target"),
    ("counting", None): ("prompt", "answer", "target"),
    ("calculator", None): ("prompt", "answer", "target"),
    ("calculator", "traces"): ("prompt", "answer", "target"),
    ("knowledge", None): ("prompt", "answer", "target", "hops"),
    ("knowledge", "documents"): ("title", "text"),
    ("proof", None): ("prompt", "answer", "target"),
    ("proof", "tactics"): ("prompt", "target"),
    ("proof", "target_variants"): ("prompt", "answer", "target"),
    ("preference", None): ("prompt", "chosen", "rejected"),
    ("preference", "instructions"): ("prompt", "answer", "target"),
    ("preference", "judgements"): ("prompt", "target"),
    ("preference", "ranked"): ("prompt", "responses", "best", "grade"),
    ("preference", "unlabelled"): ("prompt", "first", "second"),
    ("preference", "red_team"): ("prompt",),
    ("preference", "helpful"): ("prompt", "answer", "target"),
    ("preference", "helpful_pairs"): ("prompt", "chosen", "rejected"),
    ("read_debate", None): (
        "prompt",
        "passage",
        "question",
        "mine",
        "theirs",
        "mine_is_right",
        "answer",
    ),
    ("two_halves", None): ("prompt", "answer", "target", "first_half", "second_half"),
    ("images", None): ("figure", "caption"),
    ("images", "items"): ("figure", "prompt", "question", "options", "answer"),
    **{
        (name, part): columns
        for name, plugin in PLUGINS.items()
        for part, columns in [(None, plugin.columns), *plugin.parts.items()]
    },
}
"""Columns of each table of a task: its name, and its part or None. A test holds them against the
tasks that make the rows."""
