"""The kernel of proofs against the checker of proofs, which were written apart: what one takes for
proved the other takes for a proof."""

import itertools
from collections.abc import Iterator

import pytest

from coloop.data.rewards.inside.proof import grade
from coloop.data.tasks.proof import Theorem
from coloop.data.tools.proof import State
from coloop.data.tools.protocol import ToolFailure

SPLIT = "a, a>b, a>c, bc>d |- d"


@pytest.mark.parametrize(
    ("proof", "right"),
    [
        ("b c d", 1.0),
        ("bc>d b c", 1.0),
        ("bc>d\na>b\na>c", 1.0),
        ("bc>d c b", 0.0),  # `c` is derived while `b` is wanted, and then `b` is shown; `c` is open
        ("bc>d c b c", 1.0),
        ("bc>d b", 0.0),
        ("bc>d b c d", 0.0),  # nothing is left to be shown
        ("b>d b", 0.0),
        ("a>b", 0.0),
        ("", 0.0),
    ],
)
def test_a_proof_may_go_from_the_goal_to_its_premises(proof: str, right: float) -> None:
    assert grade(SPLIT, proof) == right


def tried(state: State, depth: int) -> Iterator[list[str]]:
    """Words of every proof of a state that the kernel finds with so many words."""
    if depth == 0:
        return
    for action in [*"abcdefghij", *(">".join(rule) for rule in state.rules), "none"]:
        try:
            left = state.after(action)
        except ToolFailure:
            continue
        if any(one.facts == state.facts and one.goal == state.goal for one in left):
            continue
        parts = [[*tried(one, depth - 1)] for one in left]
        for rest in itertools.product(*parts):
            yield [action, *itertools.chain(*rest)]


@pytest.mark.parametrize("seed", range(8))
def test_what_the_kernel_proves_the_checker_takes_for_a_proof(seed: int) -> None:
    theorem = Theorem(seed, 1 + seed % 2)
    text = theorem.text(theorem.facts)

    proofs = [*tried(State.read(text), 3)]

    assert [*theorem.proof] in proofs
    assert {grade(text, " ".join(words)) for words in proofs} == {1.0}


@pytest.mark.parametrize(("left", "right"), [("a, a>b", 0.0), ("a, c>b", 1.0), ("a", 1.0)])
def test_a_negation_is_shown_where_the_goal_does_not_follow(left: str, right: float) -> None:
    text = f"not {left} |- b"
    found = [*tried(State.read(text), 2)]

    assert found == ([["none"]] if right else [])
    assert grade(text, "none") == right
    assert str(State.read(text)) == text
