"""The task `proof`: derive a goal from facts and rules, in a small Horn logic.

    a, a>b, ab>c |- c        b c

A proof names the derived atoms in order; each must follow from what is known by one rule.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import last_line
from coloop.data.tasks.base import Part, Problem, Stratum, Task, each_of
from coloop.spec.tasks import ProofTask

ATOMS: Final = "abcdefghij"
SEEDS: Final = 1 << 40

Maker = Callable[["Theorem"], dict[str, Any]]


class Theorem:
    """A random theorem: facts, rules (premises, conclusion), goal, a proof of `steps` atoms."""

    def __init__(self, index: int, steps: int) -> None:
        rng = random.Random(index)
        atoms = rng.sample(ATOMS, steps + 2)
        self.facts = atoms[:1]
        self.proof = atoms[1 : steps + 1]
        known, rules = list(self.facts), []
        for atom in self.proof:
            older = rng.sample(known[:-1], 1) if len(known) > 1 and rng.random() < 0.4 else []
            rules.append(("".join(sorted({known[-1], *older})), atom))
            known.append(atom)
        if rng.random() < 0.5:  # a rule that the proof does not need
            rules.append((atoms[-1], rng.choice(atoms[1 : steps + 1])))
        self.rules = list(dict.fromkeys(rules))
        rng.shuffle(self.rules)
        self.goal = self.proof[-1]

    def text(self, known: Sequence[str]) -> str:
        """The theorem as a prompt, with additional known atoms."""
        rules = [f"{premises}>{conclusion}" for premises, conclusion in self.rules]
        return f"{', '.join([*known, *rules])} |- {self.goal}"


def _whole(theorem: Theorem) -> dict[str, Any]:
    proof = " ".join(theorem.proof)
    return {"prompt": theorem.text(theorem.facts), "answer": proof, "target": proof}


def _tactic(theorem: Theorem) -> dict[str, Any]:
    """An intermediate state and the atom to derive next."""
    done = sum(map(ord, theorem.goal + theorem.facts[0])) % len(theorem.proof)
    known = [*theorem.facts, *theorem.proof[:done]]
    return {"prompt": theorem.text(known), "target": theorem.proof[done]}


def _strata_of(make: Maker, shorter: int = 0) -> Callable[[ProofTask], Sequence[Stratum]]:
    def strata(parameters: ProofTask) -> Sequence[Stratum]:
        depths = each_of(parameters.depth)
        lengths = sorted({max(1, steps - shorter) for steps in depths})
        return [_stratum(make, steps) for steps in lengths]

    return strata


def _stratum(make: Maker, steps: int) -> Stratum:
    def problem(index: int) -> Problem:
        theorem = Theorem(index, steps)
        return Problem(key=_shape(theorem), columns=make(theorem))

    return Stratum(size=SEEDS, problem=problem)


def _shape(theorem: Theorem) -> str:
    """The key of a theorem, which does not depend on the order of its rules."""
    return f"{sorted(theorem.facts)} {sorted(theorem.rules)} {theorem.goal}"


QUESTION: Final = re.compile(
    r"^(?P<negated>not )?(?P<known>[a-j>, ]+) \|- (?P<goal>[a-j])\s*:?\s*$"
)


def check_proof(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 if every atom of the last line follows from what is known, and the last one is the goal.

    After `not`, the only proof is `none`, which is right if the goal cannot be derived. None if the
    prompt is not a theorem.
    """
    theorem = QUESTION.match(str(columns.get("prompt", "")))
    if theorem is None:
        return None
    parts = [part.strip() for part in theorem["known"].split(",")]
    rules = [tuple(part.split(">")) for part in parts if ">" in part]
    known = {part for part in parts if ">" not in part}
    proof = last_line(completion).split()
    if theorem["negated"]:
        return float(proof == ["none"] and theorem["goal"] not in _closure(known, rules))
    for atom in proof:
        if not any(rule[1] == atom and set(rule[0]) <= known for rule in rules):
            return 0.0
        known.add(atom)
    return float(bool(proof) and proof[-1] == theorem["goal"])


def _closure(known: set[str], rules: Sequence[tuple[str, ...]]) -> set[str]:
    reached = set(known)
    while True:
        new = {rule[1] for rule in rules if set(rule[0]) <= reached} - reached
        if not new:
            return reached
        reached |= new


PROOF: Final = Task(
    name="proof",
    parameters=ProofTask,
    main=Part(strata=_strata_of(_whole)),
    parts={
        "tactics": Part(strata=_strata_of(_tactic)),
        "target_variants": Part(strata=_strata_of(_whole, shorter=1)),
    },
    check=check_proof,
)
