"""Problems and verifiers of reasoning-gym. `make test-extras` has the package; elsewhere the tests
that need it are skipped."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.gym import answer_in
from coloop.data.rewards.judging import LibraryJudge
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.tasks import gym, task_rows
from coloop.data.tasks.base import TaskProblem
from coloop.errors import DataError
from coloop.spec.builtins import ReasoningGym
from coloop.spec.io import parse, require
from coloop.spec.nodes import DatasetNode, RewardNode
from coloop.spec.tasks import GymName, ReasoningGymTask

NODE = "verified"
WITHOUT = ("arc_agi", "rearc", "sokoban", "word_ladder")


def rows(generator: str, size: int = 2, **settings: Any) -> list[dict[str, Any]]:
    pytest.importorskip("reasoning_gym", reason="not installed; `make test-extras`")
    found = task_rows("reasoning_gym", generator=generator, settings=settings, size=size)
    return found


def scores(row: Mapping[str, Any], *texts: str, **options: Any) -> list[float | None]:
    source = ReasoningGym.model_validate({"type": "builtin", "name": "reasoning_gym", **options})
    asked = [ScoringRow(columns={**row, "completion": text}) for text in texts]
    return list(score_builtin(source, asked, node=NODE, judge=shared_judge()).scores)


@cache
def shared_judge() -> LibraryJudge:
    """One sandbox for all tests: loading the package takes seconds."""
    return LibraryJudge("gym", NODE, library="reasoning-gym")


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    if shared_judge.cache_info().currsize:
        shared_judge().close()


def test_a_row_has_a_problem_and_what_makes_it_again() -> None:
    first, second = rows("chain_sum", min_terms=2, max_terms=2, min_digits=1, max_digits=1)

    assert first["prompt"] != second["prompt"]
    assert first["answer"] == first["target"]
    entry = gym.generator("chain_sum", first["gym_settings"])[first["gym_index"]]
    assert entry["question"] == first["prompt"]
    assert json.loads(first["gym_settings"])["max_terms"] == 2


def test_splits_share_no_problem() -> None:
    train = {row["prompt"] for row in rows("leg_counting", size=50)}
    test = {
        row["prompt"]
        for row in task_rows("reasoning_gym", generator="leg_counting", split="test", size=50)
    }

    assert not train & test


def test_the_verifier_decides() -> None:
    [row] = rows("chain_sum", size=1)

    right, tagged, wrong, empty = scores(
        row,
        row["answer"],
        f"First I add. <answer>1</answer> No: <answer> {row['answer']} </answer>",
        "<answer>none</answer>",
        "",
    )

    assert (right, tagged) == (1.0, 1.0)
    assert wrong is not None
    assert wrong < 0.2
    assert empty == 0.0


def test_an_answer_that_differs_from_the_stored_one_may_be_right() -> None:
    [row] = rows("countdown", size=1)
    first, *rest = row["answer"].split(" ")

    assert scores(row, row["answer"]) == [1.0]
    assert scores(row, f"({first} {' '.join(rest)})") == [1.0]  # the same value, written otherwise


def test_text_that_would_be_run_does_nothing(tmp_path: Any) -> None:
    [row] = rows("countdown", size=1)
    file = tmp_path / "made"
    attack = f"__import__('pathlib').Path({str(file)!r}).touch()"

    found = scores(row, f"<answer>{attack}</answer>")

    assert found[0] is not None
    assert found[0] < 0.2
    assert not file.exists()


@pytest.mark.parametrize("generator", get_args(GymName))
def test_every_generator_scores_its_own_answer(generator: str) -> None:
    [row] = rows(generator, size=1)
    if row["answer"] == "":
        pytest.skip("problems without a stored answer")

    assert scores(row, row["answer"]) == [1.0]


def test_the_names_are_those_of_the_package() -> None:
    pytest.importorskip("reasoning_gym", reason="not installed; `make test-extras`")
    from reasoning_gym.factory import DATASETS

    assert set(get_args(GymName)) == DATASETS.keys() - {"composite", *WITHOUT}


def test_settings_that_a_generator_does_not_have_are_named() -> None:
    with pytest.raises(TaskProblem, match=r"chain_sum.*hardness"):
        rows("chain_sum", hardness=3)


def test_without_the_package_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    gym.generator.cache_clear()
    real = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name == "reasoning_gym":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)

    with pytest.raises(TaskProblem, match=r"pip install 'coloop\[reasoning-gym\]'"):
        task_rows("reasoning_gym", generator="chain_sum", size=1)


def test_rows_of_another_source_are_refused_with_what_they_have() -> None:
    with pytest.raises(DataError, match=r"needs rows of the task `reasoning_gym`.*answer"):
        scores({"answer": "4"}, "4")


@pytest.mark.parametrize(
    ("text", "tag", "answer"),
    [
        ("<answer>4</answer>", "answer", "4"),
        ("<answer>3</answer> <answer>4</answer>", "answer", "4"),
        (" 4 \n", "answer", "4"),
        ("<answer>4</answer>", None, "<answer>4</answer>"),
    ],
)
def test_where_the_answer_is(text: str, tag: str | None, answer: str) -> None:
    assert answer_in(text, tag) == answer


def test_the_documented_nodes_are_valid() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reasoning-gym.md").read_text("utf-8")
    nodes = page.partition("```yaml\n")[2].partition("```")[0]

    spec = require(parse(f"coloop: 1\nname: gym\n{nodes}schedule: {{steps: 1}}\n"))

    problems, verified = spec.nodes["problems"], spec.nodes["verified"]
    assert isinstance(problems, DatasetNode)
    assert isinstance(problems.source, ReasoningGymTask)
    assert isinstance(verified, RewardNode)
    assert isinstance(verified.source, ReasoningGym)
