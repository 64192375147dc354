"""`dataset`: rows from a task, a file, the hub or the loop itself."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import model_validator

from coloop.spec.base import Flag, Text, Whole, problem, setting
from coloop.spec.data import Curriculum, RowTokens, Source
from coloop.spec.levels import LevelsByPort, born
from coloop.spec.names import NOTHING, NamesByPort, own_columns
from coloop.spec.nodes.kind import BaseNode, InMode, NodeKind, OutPort, PortType, Stage
from coloop.spec.row_counts import Count, Counts
from coloop.spec.table_sizes import EMPTY

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


USUAL_ROWS: Final = 64
"""Assumed rows per step if the loop does not set them."""


_FROM_PREFERENCES: Final = InMode(
    begins={
        "source": {"type": "task", "task": "preference", "split": "train"},
        "columns": {"target": "chosen"},
    }
)


class DatasetNode(BaseNode):
    """Rows from a task, a file, the hub or the loop itself."""

    kind: Literal["dataset"]
    """Rows from a data source."""
    source: Source = setting()
    """Where the rows come from."""
    columns: dict[Text, Text] = setting(
        default_factory=dict, widget="select", choices="task_columns"
    )
    """Name in the loop (`prompt`, `target`, `answer`, `chosen`, ...): name in the source, or a path
    of keys in a column of objects (`reward_model.ground_truth`)."""
    rows_per_step: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows of one step; null: all of them."""
    tokens: RowTokens | None = setting(None, level="advanced")
    """Lengths that the estimate uses if it cannot read the rows; null: default assumptions."""
    shuffle: Flag = setting(True)
    """A new order in every pass."""
    curriculum: Curriculum | None = setting(None, level="advanced")
    """Draw rows by how difficult they have been, instead of pass by pass; null: pass by pass."""
    unfold: Text | None = setting(None, level="advanced", widget="column")
    """A list column; each of its entries becomes a child row."""
    join: Literal["align"] = setting("align", level="expert", hidden=True)
    """A dataset has no inputs."""

    @model_validator(mode="after")
    def _curriculum_draws(self) -> Self:
        if self.curriculum is None:
            return self
        if self.rows_per_step is None:
            raise problem(
                "conflict",
                "without `rows_per_step` each step has all rows, and a curriculum draws nothing: "
                "set `rows_per_step`",
                field="curriculum",
            )
        if not self.shuffle:
            raise problem(
                "conflict",
                "a curriculum draws rows at random: remove `shuffle: false`",
                field="curriculum",
            )
        return self

    about: ClassVar[NodeKind] = NodeKind(
        stages={"load": Stage(gives=("rows", "pairs"))},
        inputs={},
        outputs={
            "rows": OutPort(PortType.ROWS, "The rows of the step."),
            "pairs": OutPort(PortType.PAIRS, "Its rows that have `chosen` and `rejected`."),
        },
        modes=dict.fromkeys(("offline", "reward_modeling"), _FROM_PREFERENCES),
        title="Dataset",
        group="data",
        icon="database",
        help="Rows from a built-in task, a file, the hub or the loop itself. Each step it provides "
        "`rows_per_step` rows at `rows`; rows with `chosen` and `rejected` are also provided as "
        "`pairs`. `columns` maps the source's columns to `prompt`, `target` and `answer`.",
        template={
            "kind": "dataset",
            "source": {"type": "task", "task": "arithmetic", "split": "train"},
            "rows_per_step": 32,
        },
        synonyms="data, rows, prompts, questions, problems, corpus, examples, file, jsonl, csv, "
        "parquet, hub, hugging face, task, inline",
        summary=("source.split", "source.part", "source.type"),
        shown={
            "source": ("source.task", "source.path", "source.type"),
            "rows a step": ("rows_per_step",),
        },
    )

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """New rows; unfolded ones are children of those of the source."""
        root = frozenset({born(name) if self.unfold is None else born(name, born(name))})
        yield from (("rows", root), ("pairs", root))

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        root = next(iter(columns.lineage.levels(name, "rows")))
        known = columns.known.get(name) or self._source_columns()
        own = NOTHING.own(name, known if known is not None else self.columns, root)
        table = {root: own if known is not None else own.opened(name)}
        yield from (("rows", table), ("pairs", table))

    def _source_columns(self) -> frozenset[str] | None:
        """Columns of its rows; None if only the source knows them."""
        match self.source.type:
            case "task":
                return own_columns(self.source) | self.columns.keys()
            case "inline":
                return (
                    frozenset(key for row in self.source.rows for key in row) | self.columns.keys()
                )
            case _:
                return None

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """Rows of a step; a probe takes each row at most once."""
        return dict.fromkeys(counts.levels(name), self._count(name, counts))

    def _count(self, name: str, counts: "RowCounts") -> Count:
        source: Any = self.source
        given = len(source.rows) if source.type == "inline" else getattr(source, "size", None)
        rows = counts.value(f"nodes.{name}.rows_per_step", self.rows_per_step)
        if rows is None and self.rows_per_step is None and source.type == "inline":
            rows = given
        usual = rows if isinstance(rows, int) else USUAL_ROWS
        mean = replace(counts.lengths.get(name, EMPTY), rows=float(usual))
        if self.unfold is not None:
            return Count(rows=None, mean=mean)
        if not isinstance(rows, int):
            return Count(rows=None, least=1, mean=mean)
        breakdown = f"{rows} rows of `{name}`"
        if counts.is_probe:
            if given is None:
                return Count(rows=rows, least=1, breakdown=breakdown, mean=mean)
            rows = min(rows, given)
            breakdown = f"{rows} rows of `{name}`"
        return Count(rows=rows, is_exact=True, least=rows, breakdown=breakdown, mean=mean)
