"""What holds of every task whatever its parameters and seeds: splits, difficulty, right answers.

Answers are worked out here a second time from the texts alone, and proofs by search.
"""

import itertools
import random
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coloop.data.rewards.inside import proof as kernel
from coloop.data.tasks import check_row, task_rows
from coloop.data.tools.builtin import calculated
from coloop.data.tools.proof import ProofEnvironment
from coloop.data.tools.protocol import ToolFailure

Rows = list[dict[str, Any]]


def longest_number(row: dict[str, Any]) -> int:
    return max(len(number) for number in re.findall(r"\d+", row["prompt"]))


def word_length(row: dict[str, Any]) -> int:
    return len(row["prompt"].partition(" in ")[2].rstrip(":"))


def people_in(row: dict[str, Any]) -> int:
    return len(re.findall(r"\b[A-L]:", row["prompt"].rpartition(".")[0]))


def shortest_proof(row: dict[str, Any]) -> int:
    """Steps of a shortest proof, by search over sets of known atoms."""
    left, _, goal = row["prompt"].partition(" |- ")
    parts = left.split(", ")
    rules = [(set(by), to) for by, _, to in (part.partition(">") for part in parts) if to]
    start = frozenset(part for part in parts if ">" not in part)
    known, reached, steps = {start}, {start}, 0
    while not any(goal in one for one in reached):
        reached = {one | {to} for one in reached for by, to in rules if by <= one} - known
        known |= reached
        steps += 1
        assert reached, f"no proof of {row['prompt']}"
    return steps


GRADED: Final[dict[str, tuple[str, range, Callable[[dict[str, Any]], int]]]] = {
    "calculator": ("digits", range(1, 10), longest_number),
    "knowledge": ("hops", range(1, 5), lambda row: row["prompt"].count(" of ")),
    "proof": ("depth", range(1, 7), shortest_proof),
    "counting": ("length", range(4, 17), word_length),
    "preference": ("length", range(3, 10), lambda row: len(row["chosen"].split())),
    "read_debate": ("facts", range(2, 13), lambda row: row["passage"].count("=")),
    "knights": ("people", range(2, 5), people_in),
}
"""Of each task the parameter of its difficulty, values that it may have, and how a row shows it."""


@pytest.mark.parametrize("task", sorted(GRADED))
def test_a_harder_parameter_gives_harder_rows(task: str) -> None:
    parameter, values, measure = GRADED[task]

    for value in (values[0], values[len(values) // 2], values[-1]):
        rows = task_rows(task, size=5, **{parameter: value})
        assert [measure(row) for row in rows] == [value] * 5


@pytest.mark.parametrize("task", sorted(GRADED))
def test_a_range_of_difficulties_gives_all_of_them(task: str) -> None:
    parameter, values, measure = GRADED[task]
    first, last = values[0], values[2]

    rows = task_rows(task, size=60, **{parameter: (first, last)})

    assert {measure(row) for row in rows} == {first, first + 1, last}


CASES = st.sampled_from(sorted(GRADED)).flatmap(
    lambda task: st.tuples(
        st.just(task),
        st.sampled_from(GRADED[task][1][:4]),
        st.integers(0, 2**31),
        st.integers(0, 2**31),
    )
)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(CASES)
def test_train_and_test_never_share_a_problem_whatever_seeds_and_difficulty(
    case: tuple[str, int, int, int],
) -> None:
    task, value, first, second = case
    options: dict[str, Any] = {"size": 12, GRADED[task][0]: value}
    train = task_rows(task, split="train", seed=first, **options)
    test = task_rows(task, split="test", seed=second, **options)

    assert not {row["prompt"] + str(row.get("passage")) for row in train} & {
        row["prompt"] + str(row.get("passage")) for row in test
    }
    assert task_rows(task, split="train", seed=first, **options) == train


def test_the_tactics_of_a_theorem_lie_in_its_split() -> None:
    train = {rules_of(row) for row in task_rows("proof", split="train", depth=3, size=300)}
    tactics = task_rows("proof", part="tactics", split="test", depth=3, size=300)

    assert not train & {rules_of(row) for row in tactics}


def rules_of(row: dict[str, Any]) -> frozenset[str]:
    left, _, goal = row["prompt"].partition(" |- ")
    return frozenset(part for part in left.split(", ") if ">" in part) | {goal}


def test_a_passage_in_another_order_is_the_same_passage() -> None:
    seen: dict[str, set[frozenset[str]]] = {
        split: {
            frozenset(row["passage"].split())
            for row in task_rows("read_debate", facts=2, split=split, size=4000)
        }
        for split in ("train", "test")
    }

    assert not seen["train"] & seen["test"]


def test_every_call_of_a_worked_sum_is_what_the_calculator_says() -> None:
    for row in task_rows("calculator", digits=(1, 9), size=100):
        steps = re.findall(r"<<([^=]+)=(\d+)>>", row["target"])
        assert steps
        assert [calculated(expression) for expression, _ in steps] == [said for _, said in steps]
        assert calculated(row["prompt"].rstrip("=")) == steps[-1][1] == row["answer"]


def test_questions_are_answered_by_walking_through_the_documents() -> None:
    facts = {
        (relation, name): other
        for row in task_rows("knowledge", part="documents", noise=1)
        for relation, name, other in re.findall(r"The (\w+) of (\w+) is (\w+)\.", row["text"])
    }

    for row in task_rows("knowledge", hops=(1, 4), size=100):
        *relations, name = row["prompt"].rstrip(":").split(" of ")
        for relation in reversed(relations):
            name = facts[relation, name]
        assert name == row["answer"]


def test_counts_debates_and_preferences_are_right_by_a_second_look() -> None:
    for row in task_rows("counting", size=100):
        letter, _, word = row["prompt"].rstrip(":").partition(" in ")
        assert int(row["answer"]) == sum(one == letter for one in word)
    for row in task_rows("read_debate", size=100):
        facts = dict(fact.split("=") for fact in row["passage"].split())
        sides = (row["mine"], row["theirs"])
        assert (
            facts[row["question"].rstrip("?")] == row["answer"] == sides[1 - row["mine_is_right"]]
        )
        assert sides[0] != sides[1]
    for row in task_rows("preference", size=100):
        digits = re.findall(r"\d", row["prompt"])
        assert row["chosen"].split() == sorted(digits) != row["rejected"].split()


def test_knights_and_knaves_have_one_answer_by_reading_what_is_said() -> None:
    for row in task_rows("knights", people=(2, 4), size=60):
        said = dict(re.findall(r"([A-L]): ([^.:]+)\.", row["prompt"]))
        fitting = [
            " ".join(kinds)
            for kinds in itertools.product(("knight", "knave"), repeat=len(said))
            if all(
                holds(text, dict(zip(said, kinds, strict=True))) == (kind == "knight")
                for text, kind in zip(said.values(), kinds, strict=True)
            )
        ]
        assert fitting == [row["answer"]]


def holds(text: str, kinds: dict[str, str]) -> bool:
    """Truth of a sentence of the puzzle."""
    if found := re.fullmatch(r"(\w) and (\w) (are the same|differ)", text):
        first, second, word = found.groups()
        return (kinds[first] == kinds[second]) == (word == "are the same")
    parts = re.split(r" (?:and|or) ", text)
    truths = [kinds[part[0]] == part.rpartition(" ")[2] for part in parts]
    return any(truths) if " or " in text else all(truths)


THEOREMS: Final = task_rows("proof", depth=(1, 6), size=200)


def test_the_proof_that_makes_a_theorem_is_a_shortest_one() -> None:
    for row in THEOREMS:
        assert len(row["answer"].split()) == shortest_proof(row)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.sampled_from(THEOREMS), st.integers(0, 2**31), st.integers(0, 3))
def test_three_kernels_agree_on_proofs_right_and_spoiled(
    row: dict[str, Any], seed: int, changes: int
) -> None:
    """The task's checker, the formal checker of verifiers, and the environment `proof`: none
    shares code with another, or with what makes theorems."""
    rng = random.Random(seed)
    atoms = row["answer"].split()
    for _ in range(changes):
        match rng.randrange(4):
            case 0:
                rng.shuffle(atoms)
            case 1:
                atoms.insert(rng.randrange(len(atoms) + 1), rng.choice("abcdefghij"))
            case 2 if len(atoms) > 1:
                del atoms[rng.randrange(len(atoms))]
            case _:
                atoms[rng.randrange(len(atoms))] = rng.choice("abcdefghij")
    text = " ".join(atoms)

    grade = check_row(row, text)

    assert grade == kernel.grade(row["prompt"], text)
    assert (grade == 1.0) == follows(row["prompt"], atoms)
    if row["answer"].split()[-1] not in atoms[:-1]:  # the environment ends at the goal
        assert grade == earned(row, text)
    if not changes:
        assert grade == 1.0


def follows(prompt: str, atoms: list[str]) -> bool:
    """Whether each atom is the conclusion of a rule whose premises are known, and the last the
    goal."""
    left, _, goal = prompt.partition(" |- ")
    parts = left.split(", ")
    known = {part for part in parts if ">" not in part}
    rules = {part for part in parts if ">" in part}
    for atom in atoms:
        heads = {rule.partition(">")[0] for rule in rules if rule.endswith(f">{atom}")}
        if not any(known.issuperset(head) for head in heads):
            return False
        known = known | {atom}
    return atoms[-1] == goal


def earned(row: dict[str, Any], text: str) -> float:
    """What the environment pays for a text."""
    environment = ProofEnvironment()
    environment.reset("one", row, 0, lambda: None)
    try:
        return float(environment.step("one", text, 0, lambda: None).get("score", 0.0))
    except ToolFailure:
        return 0.0
