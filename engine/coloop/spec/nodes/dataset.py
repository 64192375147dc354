"""`dataset`: rows from a task, a file, the hub or the loop itself."""

from __future__ import annotations

from typing import ClassVar, Literal

from coloop.spec.base import Flag, Text, Whole, setting
from coloop.spec.data import RowTokens, Source
from coloop.spec.nodes.kind import BaseNode, InMode, NodeKind, Stage
from coloop.spec.nodes.ports import OutPort, PortType
from coloop.spec.nodes.texts import KindText, Telling


class DatasetNode(BaseNode):
    """Rows from a task, a file, the hub or the loop itself."""

    kind: Literal["dataset"]
    """Rows from outside."""
    source: Source = setting()
    """Where the rows come from."""
    columns: dict[Text, Text] = setting(
        default_factory=dict, widget="select", choices="task_columns"
    )
    """Name in the loop (`prompt`, `target`, `answer`, `chosen`, ...): name in the source."""
    rows_per_step: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows of one step; null: all of them."""
    tokens: RowTokens | None = setting(None, level="advanced")
    """Lengths that the estimate takes where it cannot read the rows; null: it assumes some."""
    shuffle: Flag = setting(True)
    """A new order in every pass."""
    unfold: Text | None = setting(None, level="advanced", widget="column")
    """A list column whose entries become children of their row."""
    join: Literal["align"] = setting("align", level="expert", hidden=True)
    """A dataset has no inputs."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "load": Stage(gives=("rows", "pairs")),
        },
        inputs={},
        outputs={
            "rows": OutPort(type=PortType.ROWS, help="The rows of the step."),
            "pairs": OutPort(
                type=PortType.PAIRS, help="Its rows that have `chosen` and `rejected`."
            ),
        },
        modes={
            "offline": InMode(
                begins={
                    "source": {"type": "task", "task": "preference", "split": "train"},
                    "columns": {"target": "chosen"},
                }
            ),
            "reward_modeling": InMode(
                begins={
                    "source": {"type": "task", "task": "preference", "split": "train"},
                    "columns": {"target": "chosen"},
                }
            ),
        },
        text=KindText(
            title="Dataset",
            group="data",
            icon="database",
            help=(
                "Rows from a built-in task, a file, the hub or the loop itself. Each step it gives "
                "`rows_per_step` rows at `rows`; rows that have `chosen` and `rejected` also leave "
                "as `pairs`. `columns` says which of the source's columns is the `prompt`, the "
                "`target` and the `answer`."
            ),
            template={
                "kind": "dataset",
                "source": {"type": "task", "task": "arithmetic", "split": "train"},
                "rows_per_step": 32,
            },
            synonyms=(
                "data, rows, prompts, questions, problems, corpus, examples, file, jsonl, csv, "
                "parquet, hub, hugging face, task, inline"
            ),
            summary=("source.split", "source.part", "source.type"),
            telling=(
                Telling("source", ("source.task", "source.path", "source.type")),
                Telling("rows a step", ("rows_per_step",)),
            ),
        ),
    )
