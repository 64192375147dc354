"""The built-in procedural tasks as sources of a dataset: their names and parameters.

One class for each task; `data/tasks` makes the rows and checks them. All parameters are hot: a
phase may make problems harder. A range parameter is a number or `[least, greatest]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field

from coloop.spec.base import Flag, Number, PlainValue, Range, Whole, setting
from coloop.spec.installed import records
from coloop.spec.plugins import Task, TaskPlugin, only_word

Tables = Mapping[str | None, tuple[str, ...]]
USUAL: Final = ("prompt", "answer", "target")


class OwnTask(Task):
    """A task that coloop itself makes and checks."""

    tables: ClassVar[Tables] = {None: USUAL}
    """Columns of its table, and of those that `part` names."""


class ArithmeticTask(OwnTask):
    """Sums, differences, products: `12+34=` and its answer."""

    tables: ClassVar[Tables] = {None: USUAL, "judged": (*USUAL, "completion", "label")}
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


class CountdownTask(OwnTask):
    """Reach a target with given numbers: an expression is the answer."""

    tables: ClassVar[Tables] = {None: (*USUAL, "numbers", "goal")}
    task: Literal["countdown"]
    """Reach a target with given numbers."""
    numbers: Range = setting(3, hot=True, span=(2, 6))
    """How many numbers are given."""
    maximum: Whole = setting(20, ge=2, le=1000, hot=True)
    """Largest given number."""
    operations: tuple[Literal["+", "-", "*"], ...] = setting(("+", "-"), hot=True, min_length=1)
    """Operations that a solution may use."""


class SortingTask(OwnTask):
    """Put symbols in order."""

    task: Literal["sorting"]
    """Put symbols in order."""
    length: Range = setting((3, 6), hot=True, span=(2, 12))
    """Symbols in one problem."""
    symbols: Literal["digits", "letters"] = setting("digits", hot=True)
    """What is sorted."""


class LastLetterTask(OwnTask):
    """Chain the last letters of words, with the gold steps in `steps`."""

    tables: ClassVar[Tables] = {None: (*USUAL, "steps")}
    task: Literal["last_letter"]
    """Chain the last letters of words."""
    words: Range = setting((2, 4), hot=True, span=(1, 8))
    """Words in one problem."""


class KnightsTask(OwnTask):
    """Knights tell the truth, knaves lie: who is who?"""

    task: Literal["knights"]
    """Knights and knaves."""
    people: Range = setting(2, hot=True, span=(2, 5))
    """People in one puzzle."""


class CountingTask(OwnTask):
    """Count a letter in a word."""

    task: Literal["counting"]
    """Count a letter in a word."""
    length: Range = setting((4, 8), hot=True, span=(2, 16))
    """Letters of the word."""


class CalculatorTask(OwnTask):
    """Longer arithmetic, made to be solved with a calculator."""

    tables: ClassVar[Tables] = {None: USUAL, "traces": USUAL}
    task: Literal["calculator"]
    """Longer arithmetic, made to be solved with a calculator."""
    digits: Range = setting((2, 4), hot=True, span=(1, 9))
    """Digits of each operand."""
    part: Literal["traces"] | None = setting(None, hot=True)
    """`traces`: worked solutions with calls in them."""


class KnowledgeTask(OwnTask):
    """Questions over a made-up world, answered by looking up facts."""

    tables: ClassVar[Tables] = {None: (*USUAL, "hops"), "documents": ("title", "text")}
    task: Literal["knowledge"]
    """Questions over a made-up world."""
    hops: Range = setting((1, 2), hot=True, span=(1, 4))
    """Facts that one answer needs."""
    noise: Whole = setting(0, ge=0, hot=True)
    """Irrelevant documents per relevant one."""
    part: Literal["documents"] | None = setting(None, hot=True)
    """`documents`: the facts themselves."""


class ProofTask(OwnTask):
    """Statements of a small rewriting system."""

    tables: ClassVar[Tables] = {
        None: USUAL,
        "tactics": ("prompt", "target"),
        "target_variants": USUAL,
    }
    task: Literal["proof"]
    """Statements of a small rewriting system."""
    depth: Range = setting((1, 4), hot=True, span=(1, 6))
    """Steps of a shortest proof."""
    part: Literal["tactics", "target_variants"] | None = setting(None, hot=True)
    """`tactics`: proof steps to train on; `target_variants`: easier variants of hard statements."""


class PreferenceTask(OwnTask):
    """Texts with a checkable property, and pairs of better and worse."""

    tables: ClassVar[Tables] = {
        None: ("prompt", "chosen", "rejected"),
        "instructions": USUAL,
        "judgements": ("prompt", "target"),
        "ranked": ("prompt", "responses", "best", "grade"),
        "unlabelled": ("prompt", "first", "second"),
        "red_team": ("prompt",),
        "helpful": USUAL,
        "helpful_pairs": ("prompt", "chosen", "rejected"),
    }
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


class ReadDebateTask(OwnTask):
    """A passage that only the debaters may read, a question, and two answers."""

    tables: ClassVar[Tables] = {
        None: ("prompt", "passage", "question", "mine", "theirs", "mine_is_right", "answer")
    }
    task: Literal["read_debate"]
    """A passage that only the debaters may read, a question, and two answers."""
    facts: Range = setting((3, 6), hot=True, span=(2, 12))
    """Facts in the passage."""


class TwoHalvesTask(OwnTask):
    """One answer written by two agents, one half each."""

    tables: ClassVar[Tables] = {None: (*USUAL, "first_half", "second_half")}
    task: Literal["two_halves"]
    """One answer written by two agents, one half each."""
    digits: Range = setting(2, hot=True, span=(1, 6))
    """Digits of each operand."""


class ImagesTask(OwnTask):
    """Small one-bit figures with captions and questions."""

    tables: ClassVar[Tables] = {
        None: ("figure", "caption"),
        "items": ("figure", "prompt", "question", "options", "answer"),
    }
    task: Literal["images"]
    """Small one-bit figures with captions and questions."""
    pixels: Whole = setting(8, ge=4, le=64, hot=True)
    """Length of an edge in pixels."""
    part: Literal["items"] | None = setting(None, hot=True)
    """`items`: questions with options and answers."""


GymName = Literal[
    "ab",
    "acre",
    "advanced_geometry",
    "aiw",
    "arc_1d",
    "base_conversion",
    "basic_arithmetic",
    "bf",
    "binary_alternation",
    "binary_matrix",
    "bitwise_arithmetic",
    "boxnet",
    "caesar_cipher",
    "calendar_arithmetic",
    "chain_sum",
    "circuit_logic",
    "codeio",
    "coin_flip",
    "color_cube_rotation",
    "complex_arithmetic",
    "count_bits",
    "count_primes",
    "countdown",
    "course_schedule",
    "cryptarithm",
    "decimal_arithmetic",
    "decimal_chain_sum",
    "dice",
    "emoji_mystery",
    "family_relationships",
    "figlet_font",
    "fraction_simplification",
    "futoshiki",
    "game_of_life",
    "game_of_life_halting",
    "gcd",
    "graph_color",
    "group_anagrams",
    "gsm_symbolic",
    "intermediate_integration",
    "isomorphic_strings",
    "jugs",
    "kakurasu",
    "knight_swap",
    "knights_knaves",
    "largest_island",
    "lcm",
    "leg_counting",
    "letter_counting",
    "letter_jumble",
    "list_functions",
    "mahjong_puzzle",
    "manipulate_matrix",
    "maze",
    "mini_sudoku",
    "modulo_grid",
    "n_queens",
    "needle_haystack",
    "number_filtering",
    "number_format",
    "number_sequence",
    "number_sorting",
    "palindrome_generation",
    "palindrome_partitioning",
    "path_star",
    "polynomial_equations",
    "polynomial_multiplication",
    "pool_matrix",
    "power_function",
    "prime_factorization",
    "products",
    "propositional_logic",
    "puzzle24",
    "quantum_lock",
    "ransom_note",
    "rectangle_count",
    "rotate_matrix",
    "rotten_oranges",
    "rubiks_cube",
    "rush_hour",
    "self_reference",
    "sentence_reordering",
    "shortest_path",
    "simple_equations",
    "simple_geometry",
    "simple_integration",
    "spell_backward",
    "spiral_matrix",
    "string_insertion",
    "string_manipulation",
    "string_splitting",
    "string_synthesis",
    "sudoku",
    "survo",
    "syllogism",
    "time_intervals",
    "tower_of_hanoi",
    "tsumego",
    "word_sequence_reversal",
    "word_sorting",
    "zebra_puzzles",
]
"""Generators of reasoning-gym 0.1.25. Without `composite`, which mixes others, and four whose
verifiers need more than the problem: arc_agi, rearc, sokoban, word_ladder."""


class ReasoningGymTask(OwnTask):
    """Problems of reasoning-gym, over a hundred generators with verifiers.

    Needs `pip install 'coloop[reasoning-gym]'`. The reward `reasoning_gym` scores answers.
    """

    tables: ClassVar[Tables] = {None: (*USUAL, "gym", "gym_index", "gym_settings")}
    task: Literal["reasoning_gym"]
    """Generated problems with verifiers, from reasoning-gym."""
    generator: GymName = setting("chain_sum", hot=True)
    """Name of the generator (reasoning-gym: dataset)."""
    settings: dict[str, PlainValue] = setting({}, hot=True)
    """Its own settings, which make problems easier or harder, such as `max_terms: 4`."""


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
    | ImagesTask
    | ReasoningGymTask,
    Field(discriminator="task"),
]


_OWN: tuple[type[OwnTask], ...] = get_args(get_args(TaskSource)[0])
PLUGINS: dict[str, TaskPlugin] = records(
    "coloop.tasks", TaskPlugin, [only_word(task, "task") for task in _OWN]
)

if not TYPE_CHECKING and PLUGINS:
    _parameters = (plugin.parameters for plugin in PLUGINS.values())
    TaskSource = Annotated[reduce(or_, (*_OWN, *_parameters)), Field(discriminator="task")]

TASK_COLUMNS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    (name, part): columns
    for name, tables in [
        *((only_word(task, "task"), task.tables) for task in _OWN),
        *((name, {None: plugin.columns, **plugin.parts}) for name, plugin in PLUGINS.items()),
    ]
    for part, columns in tables.items()
}
"""Columns of each table of a task: its name, and its part or None. A test holds them against the
tasks that make the rows."""
