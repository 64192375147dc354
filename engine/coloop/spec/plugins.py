"""What a third-party package provides by an entry point: one record for each thing it adds.

A record is light: it says what is in the language, and names what carries it out as
`package.module:object`, which is imported when a run needs it. The module with the records of a
package imports nothing of coloop but this: it is loaded with the language, in every process, before
torch. `examples/coloop-example-plugin` is an example.

Our own algorithms have the same records: catalog, schema, help and refusals are made from them. A
text that is missing is left empty, and the name is the title.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal, get_args

from pydantic import ConfigDict

from coloop.spec.base import Flag, Name, Number, Range, Section, Text, Whole, setting, title_of
from coloop.spec.lean import record

__all__ = [
    "AdvantageRecord",
    "AlgorithmPlugin",
    "AlgorithmRecord",
    "Builtin",
    "Flag",
    "Name",
    "Number",
    "Range",
    "RewardPlugin",
    "Section",
    "Task",
    "TaskPlugin",
    "Text",
    "ToolPlugin",
    "Whole",
    "setting",
]

ARXIV: Final = "https://arxiv.org/abs/"

Fields = Literal["rewards", "preference", "distillation", "own"]
RecipeName = Literal[
    "policy",
    "preference",
    "distillation",
    "imitation",
    "value",
    "bradley_terry",
    "labels",
    "implicit_prm",
    "choices",
]


@record
class AlgorithmRecord:
    """An algorithm of the loop language."""

    name: str
    title: str = ""
    help: str = ""
    formula: str = ""
    """On one line, for the catalog."""
    paper: str = ""
    fields: Fields = "own"
    """Which settings it has: those of `RewardsAlgorithm`, `PreferenceAlgorithm` or
    `DistillationAlgorithm`, or those of a section whose only name it is."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the base of its fields, e.g. `REWARDS_BASE`."""
    recipe: RecipeName | None = None
    """Which recipe carries it out (`recipes.table`); None: it can be drawn and planned, not run."""
    needs_reference: bool = True
    """For preference algorithms: whether it reads log-probs of a reference."""
    family: str = ""
    """The algorithm of which it is a preset; empty: it is one itself."""
    framework: str | None = None
    """Whose defaults a preset has (`FRAMEWORKS`)."""
    version: str = ""
    """Of the framework, whose source was read for the preset."""
    since: str = ""
    """The version that was read before it; empty: none."""
    changed: str = ""
    """What differs from that version; empty: nothing."""


@record
class AdvantageRecord:
    """A way to make advantages of scores: a value of `advantage`."""

    name: str
    needs: Literal["group", "values", "greedy", "baseline", "nothing"] = "nothing"
    """`group`: it compares the rows of a group, by a function of `recipes.estimators`; `values`:
    those of a critic; `greedy`: the score of each prompt's greedy row; `baseline`: a moving average
    of earlier rewards."""
    deviation: str = "none"
    """Which deviation scales it where the loop does not say."""
    whole_rows: bool = False
    """Whether the scores of a row are summed before rows are compared; else each is compared."""
    formula: str = ""
    """Advantage of row i as a Python expression: `r_i - mean(group)`."""
    note: str = ""
    """How to read the formula."""


def _title_of(name: str, info: object = None) -> str:
    return "Reward name" if name == "name" else title_of(name, info)


class Builtin(Section):
    """What every built-in reward has."""

    model_config = ConfigDict(field_title_generator=_title_of)

    type: Literal["builtin"]
    """A reward that is built into coloop."""


class Task(Section):
    """What every task has."""

    type: Literal["task"]
    """A built-in task that makes its rows."""
    split: Literal["train", "test"] = setting("train", hot=True)
    """Which half of the problems; the halves do not overlap."""
    size: Whole | None = setting(None, ge=1, le=10_000_000, hot=True, unit="rows")
    """Number of rows in the split; null: the task's default."""
    seed: Whole = setting(0, ge=0, level="advanced", hot=True)
    """A different seed gives a different set of problems; use the same seed for train and test."""


@record
class RewardPlugin:
    """A reward: `source: {type: builtin, name: ...}`."""

    options: type[Builtin]
    """Its section; `name` is a `Literal` of its name alone. The docstring is its help."""
    score: str
    """`module:function`, `(rows: Sequence[ScoringRow], options) -> Sequence[Score]`."""
    needs: Literal["rollouts", "rows", "scores"] = "rows"
    """`rollouts` counts tokens, `rows` reads columns, `scores` reads what other scorers said."""

    @property
    def name(self) -> str:
        return only_word(self.options, "name")


@record
class TaskPlugin:
    """A task: `source: {type: task, task: ...}`."""

    parameters: type[Task]
    """Its section; `task` is a `Literal` of its name alone. The docstring is its help."""
    task: str
    """`module:object` of a `coloop.data.tasks.base.Task`."""
    columns: tuple[str, ...]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns of further tables, by the name that `part` takes."""

    @property
    def name(self) -> str:
        return only_word(self.parameters, "task")


@record
class AlgorithmPlugin:
    """An algorithm of port `rewards` or `pairs`: settings of one of coloop's recipes and, if it
    compares the rows of a group in its own way, that advantage."""

    algorithm: AlgorithmRecord
    advantage: AdvantageRecord | None = None
    estimator: str = ""
    """`module:function` of its advantage, `(GroupedRewards) -> Tensor` of shape (E,); the result is
    divided by the deviation that the settings name."""

    @property
    def name(self) -> str:
        return self.algorithm.name


@record
class ToolPlugin:
    """A type of tool: `kind: tool`, `type: ...`."""

    name: str
    tool: str
    """`module:function`, `(ToolNode) -> Tool` (`coloop.data.tools.protocol`)."""
    call: str
    """Regular expression of a call; it has a group named `argument`."""
    argument: str = "text"
    """Name of the call's argument."""


def only_word(section: type[Section], field_name: str) -> str:
    """The one word that a field of a section allows: the name by which a union knows it."""
    words = get_args(section.model_fields[field_name].annotation)
    if len(words) != 1 or not isinstance(words[0], str):
        raise TypeError(f"`{field_name}` of {section.__name__} is not a `Literal` of one name")
    return words[0]
