"""What a package of a third party writes its records with; see `examples/coloop-example-plugin`.

A package adds rewards, tasks, algorithms and tools by entry points of the groups `coloop.rewards`,
`coloop.tasks`, `coloop.algorithms` and `coloop.tools`. Each names a record, in a module that
imports nothing of coloop but this: it is loaded with the language, in every process, before torch.
"""

from coloop.spec.algorithms.record import AdvantageRecord, AlgorithmRecord
from coloop.spec.base import Flag, Name, Number, Range, Section, Text, Whole, setting
from coloop.spec.plugin_records import (
    AlgorithmPlugin,
    Builtin,
    RewardPlugin,
    Task,
    TaskPlugin,
    ToolPlugin,
)

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
