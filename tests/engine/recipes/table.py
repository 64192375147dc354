"""What proves each algorithm of the language, gathered from the tests themselves; the table in the
README of the recipes shows it, and `test_table` holds both.

A name counts as tested by literal numbers where a test fails as soon as the algorithm's own numbers
are off (`literals`).
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from tests.engine.algorithm_loops import LOOPS
from tests.engine.recipes import literals
from tests.engine.recipes.test_credit import GOLDEN as ADVANTAGES
from tests.engine.recipes.test_credit import OPENRLHF
from tests.engine.recipes.test_recipes import GOLDEN as LOSSES
from tests.engine.runs import test_products, test_scorers
from tests.engine.slow.test_algorithms import LEARNS
from tests.engine.slow.test_scorers import LEARNS as SCORERS_LEARN
from tests.engine.training.test_invariance import VARIANTS
from tests.experiments.table import EXPERIMENTS
from tests.presets.test_loops import ON_A_CPU

from coloop.algorithms.recipes import RECIPES
from coloop.spec import presets
from coloop.spec.algorithm import PORTS_OF, node_algorithms
from coloop.spec.algorithms.registry import (
    ALGORITHMS,
    DISTILLATION_BASE,
    FRAMEWORKS,
    PREFERENCE_BASE,
    REWARDS_BASE,
    family_of,
)
from coloop.spec.io import parse, require

for _file in sorted(Path(__file__).parent.glob("test_*.py")):
    if _file.stem != "test_table":
        import_module(f"tests.engine.recipes.{_file.stem}")  # declares its literal numbers

BASES = {
    "rewards": REWARDS_BASE,
    "preference": PREFERENCE_BASE,
    "distillation": DISTILLATION_BASE,
}
OWN_PORTS = ("rewards", "pairs", "demonstrations", "reference")
"""Of policies: these ports' algorithms are proved one by one."""

FAMILIES: dict[str, str] = {
    family_of(name): ports[0]
    for section, ports in PORTS_OF.items()
    for name in get_args(section.model_fields["name"].annotation)
}
"""Every algorithm of the language, and its first teaching port."""
SCORERS = frozenset({"bradley_terry", "label_ce"})
"""Algorithms of `pairs` that are no policy's."""

WITHOUT_GOLDEN = frozenset(
    {"remax", "reinforce", "sft", "dpo", "online_dpo", "ipo", "kto", "orpo", "simpo", "spin"}
)
"""Of which no framework's own function was run; formulas and literal numbers hold them alone."""
BY_OTHERS = {
    **{"dapo": "loss", "ppo": "gae, loss", "vapo": "gae", "pf_ppo": "gae, loss"},
    "opd": "divergence",
}
"""Golden numbers that stand under the name of what an algorithm is made of."""

PARITY_HEAD = "| preset | differs from | in | version | since the version read before |"

HEAD = "| algorithm | port | literal numbers | golden numbers | invariance | 3 steps | learns |"


def literal_names() -> frozenset[str]:
    """Algorithms all of whose parts are held by literal numbers."""
    return frozenset(name for name in RECIPES if literals.held(name) == literals.parts(name))


def golden(name: str) -> str:
    """Which golden numbers of frameworks an algorithm reproduces."""
    if name in BY_OTHERS:
        return BY_OTHERS[name]
    kinds = {
        "advantage": {family_of(one) for one in (*ADVANTAGES, *OPENRLHF)},
        "loss": {family_of(algorithm) for algorithm, _, _ in LOSSES.values()},
        "value": {"value"},
    }
    for declared in literals.DECLARED:
        if declared.golden:
            kinds[declared.golden].add(declared.algorithm)
    return ", ".join(kind for kind, names in kinds.items() if name in names)


def invariant() -> frozenset[str]:
    """Names whose loss and gradient are held against micro-batches, padding, packing and order."""
    return frozenset(algorithm for algorithm, _ in VARIANTS.values())


def is_policys(name: str) -> bool:
    return FAMILIES[name] in OWN_PORTS and name not in SCORERS


def of_loop(text: str) -> frozenset[str]:
    """Algorithms that a loop names."""
    spec = require(parse(text))
    by_port = [node_algorithms(spec, node) for node in spec.nodes]
    entries = [entry for ports in by_port for listed in ports.values() for entry in listed]
    return frozenset(family_of(entry.name) for entry in entries)


def of_presets(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for one in names for name in of_loop(presets.load_loop_text(one)))


@cache
def in_short_runs() -> frozenset[str]:
    """Algorithms by which whole runs take a few steps."""
    others = (test_products.FOUR_MODELS, test_scorers.CHOOSING)
    return frozenset(
        {*LOOPS, *of_presets(ON_A_CPU), *(n for text in others for n in of_loop(text))}
    )


@cache
def learning() -> frozenset[str]:
    """Algorithms by which a slow test asks that something is learned, and nothing by chance."""
    return frozenset({*LEARNS, *SCORERS_LEARN, *of_presets(one.preset for one in EXPERIMENTS)})


def rows() -> Iterator[list[str]]:
    """The table, a row an algorithm."""
    literal, held = literal_names(), invariant()
    for name, port in FAMILIES.items():
        yield [
            f"`{name}`",
            port,
            _mark(name in literal),
            golden(name) or ("none there" if name in WITHOUT_GOLDEN else "–"),
            _mark(name in held),
            _mark(name in in_short_runs()),
            _mark(name in learning()),
        ]


def parity_rows() -> Iterator[list[str]]:
    """The presets of frameworks, a row each."""
    for record in ALGORITHMS.values():
        if record.framework is None:
            continue
        base = BASES[record.fields]
        own, family = {**base, **record.preset}, {**base, **ALGORITHMS[record.family].preset}
        different = [f"{name}: {_said(own[name])}" for name in own if own[name] != family[name]]
        changed = record.changed or ("unchanged" if record.since else "–")
        yield [
            f"`{record.name}`",
            f"`{record.family}`",
            ", ".join(different) or "nothing",
            f"{FRAMEWORKS[record.framework]} {record.version}",
            f"{record.since}: {changed}" if record.since else changed,
        ]


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_said(one)}" for name, one in value.items()) + "}"
    return "null" if value is None else str(value).lower()


def written() -> str:
    """As the README has it."""
    return _written(HEAD, rows())


def parity_written() -> str:
    """The presets of frameworks as the README has them."""
    return _written(PARITY_HEAD, parity_rows())


def _written(head: str, body: Iterable[list[str]]) -> str:
    lines = [head, "|---" * head.count(" | ") + "|---|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def _mark(is_there: bool) -> str:
    return "yes" if is_there else "–"
