"""`environment`: a world in which one or several policies act in turns."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from coloop.spec.base import Name, Number, Text, Whole, setting
from coloop.spec.environment import EnvironmentSource
from coloop.spec.levels import LevelsByPort, children
from coloop.spec.names import EPISODE_COLUMNS, NOTHING, ROLLOUT_COLUMNS, NamesByPort, NamesOf
from coloop.spec.nodes.kind import BaseNode, InPort, NodeKind, OutPort, PortType, Stage
from coloop.spec.reading import PromptTemplate
from coloop.spec.row_counts import Count, Counts, add_up
from coloop.spec.table_sizes import mean_written

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage, RowCounts

USUAL_TURNS: Final = 8.0
"""Assumed turns of an episode, for the estimate."""


class EnvironmentNode(BaseNode):
    """A world in which one or several policies act in turns."""

    kind: Literal["environment"]
    """A world in which one or several policies act in turns."""
    source: EnvironmentSource = setting()
    """The environment."""
    episodes: Whole = setting(1, ge=1, le=4096, hot=True, short="{} episodes a row")
    """Episodes for each row; all of them begin in the same way."""
    players: Whole | None = setting(None, ge=1, le=64, level="advanced")
    """Number of players; null: as many as policies. With fewer policies, these play several
    seats."""
    seats: Literal["fixed", "in_turn"] = setting("fixed", level="advanced")
    """Who sits where: in the order of the edges, or one place further in each episode of a row."""
    max_turns: Whole = setting(64, ge=1, hot=True)
    """Turns of all players after which an episode is cut."""
    template: PromptTemplate | None = setting(None)
    """The prompt of a turn, in Jinja over `observation`, `seat`, `turn`, what the environment shows
    (`board` and `news` of TextArena) and the columns of the row; null: the observation."""
    action: Text | None = setting(None, widget="text", reference="template", level="advanced")
    """The action, in Jinja over the same and `completion`; null: the completion."""
    reward: Name = setting("reward", level="advanced")
    """The number of the environment that counts: `reward`, `score`, or the name of a part."""
    discount: Number = setting(1.0, ge=0, le=1, level="advanced", hot=True)
    """Factor on what a player earns one of its turns later."""
    on_error: Literal["stop", "skip_row"] = setting("stop", level="advanced")
    """What a failure of the environment does: stop the run, or leave out the episode."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={"generate": Stage(reads=("rows",), gives=("rollouts", "scores"), calls=True)},
        inputs={
            "rows": InPort(
                PortType.ROWS, "generate", "Rows from which episodes begin.", max=1, required=True
            ),
            "policy": InPort(
                PortType.POLICY,
                "generate",
                "Who acts: a policy for each seat, in the order of the edges.",
                required=True,
            ),
        },
        outputs={
            "rollouts": OutPort(PortType.ROLLOUTS, "The turns of all players, a row for each."),
            "scores": OutPort(
                PortType.SCORES, "What the player of a turn earned from there to the end."
            ),
        },
        rows=("rows",),
        metrics=("episode/*",),
        title="Environment",
        group="tools",
        icon="dices",
        help="A world in which policies act in turns: a class of yours, a Gymnasium-style class or "
        "a game of TextArena. Each policy at `policy` plays a seat; each turn becomes a row of the "
        "policy that wrote it, with what it earned as score.",
        template={
            "kind": "environment",
            "source": {"type": "textarena", "game": "TicTacToe-v0"},
            "episodes": 4,
        },
        synonyms="game, gym, gymnasium, textarena, self-play, players, world, multi-agent, episode",
        summary=("source.game", "source.entry", "source.type"),
        shown={
            "episodes": ("episodes",),
            "turns": ("max_turns",),
            "seats": ("seats",),
        },
    )

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        """A turn is a child of the row from which its episode began."""
        turns = children(name, lineage.input_levels(name))
        yield from (("rollouts", turns), ("scores", turns))

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        names = columns.inputs(name)
        for port in ("rollouts", "scores"):
            table: NamesOf = {}
            for level in columns.lineage.levels(name, port):
                above = names.get(level.parents[0], NOTHING) if level.parents else NOTHING
                own = above.below(1).own(name, (*ROLLOUT_COLUMNS, *EPISODE_COLUMNS), level)
                table[level] = own.opened(name).with_scores([name])
            yield port, table

    def counts_given(self, name: str, counts: "RowCounts", rows: Counts) -> Counts:
        """Not known: the environment ends an episode."""
        rollouts = counts.callees(name, "policy")
        shown = counts.shown_to(name, add_up(rows.values()).mean)
        turns = min(float(self.max_turns), USUAL_TURNS)
        levels = counts.lineage.levels(name, "rollouts")
        mean = replace(
            shown,
            rows=shown.rows * self.episodes * turns / max(len(levels), 1),
            alike=1.0,
            written=max(map(mean_written, rollouts), default=0.0),
            written_max=max((float(own.max_new_tokens) for own in rollouts), default=0.0),
        )
        return {**rows, **{level: Count(rows=None, mean=mean) for level in levels}}
