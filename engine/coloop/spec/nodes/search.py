"""`search`: drives policies to grow trees or label steps."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from coloop.spec.base import Flag, Number, Text, setting
from coloop.spec.levels import LevelsByPort, children
from coloop.spec.names import NOTHING, ROLLOUT_COLUMNS, TREE_COLUMNS, NamesByPort, NamesOf
from coloop.spec.nodes.kind import BaseNode, InPort, NodeKind, OutPort, PortType, Stage, When
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import UNKNOWN, Counts, add_up
from coloop.spec.search import Budget, Completions, Expand, Select, StepLabels
from coloop.spec.table_sizes import TableSize, mean_written

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts


_TREES: When = {"method": ("puct", "and_or")}

COMPLETIONS_BY_RATE: Final = 8
"""Assumed completions per text where the pass rate decides them."""
BEGINNINGS: Final = 1
"""Mean number of prefixes that a binary search completes: one to three, or none for problems
that are always or never solved."""


class SearchNode(BaseNode):
    """Drives policies to grow trees or label steps."""

    kind: Literal["search"]
    """Drives policies to grow trees or label steps."""
    method: Literal["monte_carlo", "binary_search", "puct", "and_or"] = setting()
    """Completions of every step, binary search for the first error, or a tree."""
    completions: Completions = setting(8, hot=True)
    """Completions that estimate a step's success probability."""
    step_separator: Text = setting("\n", level="advanced")
    """Text that ends a step."""
    stop_at_zero: Flag = setting(False, level="advanced")
    """Label no more steps after one whose success probability is 0."""
    labels: StepLabels = setting("soft", level="advanced")
    """Labels: success probabilities, right and wrong, or relative progress."""
    select: Select | None = setting(None, level="advanced")
    """Which branch is followed; null: the method's own rule."""
    expand: Expand | None = setting(None, level="advanced")
    """How branches are created; null: the method's default."""
    step_reward: Number = setting(0.0, level="advanced")
    """Reward of each action, e.g. -1 to prefer short proofs."""
    and_return: Literal["min"] = setting("min", level="expert")
    """Return of a node all of whose children are needed."""
    give: Literal["proofs", "visited"] = setting("proofs", level="advanced")
    """Return rows of finished texts or proofs, or of every visited prefix or state."""
    budget: Budget = setting()
    """Hard limits."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "generate": Stage(
                reads=("rows",), gives=("rollouts", "scores", "step_scores"), calls=True
            )
        },
        inputs={
            "rows": InPort(PortType.ROWS, "generate", "Rows to search from.", max=1, required=True),
            "policy": InPort(
                PortType.POLICY, "generate", "Who proposes the next step.", required=True
            ),
            "outcome": InPort(PortType.CHECK, "generate", "What grades a finished path.", max=1),
            "value": InPort(
                PortType.CHECK, "generate", "What grades an unfinished path.", max=1, when=_TREES
            ),
            "tools": InPort(
                PortType.TOOL,
                "generate",
                "The environment it moves in.",
                when={"method": ("and_or",)},
            ),
        },
        outputs={
            "rollouts": OutPort(PortType.ROLLOUTS, "The paths or labelled texts that it finds."),
            "scores": OutPort(PortType.SCORES, "One number per searched row."),
            "step_scores": OutPort(PortType.SCORES, "One number per step."),
            "policy": OutPort(PortType.POLICY, "A handle: the policy with search."),
        },
        rows=("rows",),
        metrics=("search/*",),
        title="Search",
        group="tools",
        icon="git-fork",
        help="Drives policies to grow trees or to label steps: Monte Carlo completions, binary "
        "search for the first error, PUCT, and-or trees. Every search has a hard budget.",
        template={
            "kind": "search",
            "method": "monte_carlo",
            "completions": 8,
            "budget": {"tokens": 100000},
        },
        synonyms="tree, mcts, monte carlo, puct, omegaprm, proof search, beam",
        summary=("method",),
        shown={
            "method": ("method",),
            "completions": ("completions",),
            "budget": ("budget.tokens",),
        },
    )

    @property
    def grows_tree(self) -> bool:
        """Whether it grows a tree instead of labelling the steps of existing texts."""
        return self.method in ("puct", "and_or")

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """Children of the rows it searches from; existing texts are labelled in place."""
        labels_texts = not self.grows_tree and lineage.brings_texts(name)
        rows = lineage.input_levels(name)
        grown = rows if labels_texts else children(name, rows)
        yield from (("rollouts", grown), ("step_scores", grown))
        yield "scores", rows if self.method == "and_or" else grown

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        own = TREE_COLUMNS if self.grows_tree else ROLLOUT_COLUMNS
        for port in ("rollouts", "step_scores", "scores"):
            table: NamesOf = {}
            for level in columns.lineage.levels(name, port):
                if level in names:
                    table[level] = names[level].with_scores([name])
                else:
                    above = names.get(level.parents[0], NOTHING) if level.parents else NOTHING
                    grown = above.below(1).own(name, own, level)
                    table[level] = grown.with_scores([name])
            yield port, table

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """Unknown for a tree; labelled rows keep their number."""
        mean = self._texts(counts.callees(name, "policy"), add_up(rows.values()).mean)
        grown = counts.lineage.levels(name, "rollouts")
        mean = mean.times(1 / max(len(grown), 1))
        return {**rows, **{level: replace(rows.get(level, UNKNOWN), mean=mean) for level in grown}}

    def _texts(self, rollouts: list[Rollout], rows: TableSize) -> TableSize:
        factor = self.texts_per_row
        written_max = max((float(rollout.max_new_tokens) for rollout in rollouts), default=0.0)
        if self.budget.tokens and written_max and rows.rows:
            factor = min(factor, self.budget.tokens / (written_max * rows.rows))
        return replace(
            rows,
            rows=rows.rows * max(factor, 1.0),
            alike=max(factor, 1.0),
            written=max(map(mean_written, rollouts), default=0.0),
            written_max=written_max,
        )

    @property
    def texts_per_row(self) -> float:
        """Mean texts per row if the token budget does not end the search first."""
        each = self.completions if isinstance(self.completions, int) else COMPLETIONS_BY_RATE
        searches = self.budget.searches_per_row
        match self.method:
            case "binary_search":
                return float(each * (1 + BEGINNINGS * (searches or 1)))
            case "puct" | "and_or":
                texts = branches(self.expand or Expand()) * (searches or 1)
                return float(min(texts, self.budget.nodes or texts))
        return float(searches or each)


def branches(expand: Expand) -> int:
    """Branches drawn at a node when it is first visited."""
    widening = expand.progressive
    return expand.samples if widening is None else min(expand.samples, max(1, int(widening.c)))
