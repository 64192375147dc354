"""One contract for every training backend, alone and over ranks.

The same three updates give the same losses and weights as in float64, and the same checkpoint; a
backend alone goes on from it bit for bit, and any other from where it stands within rounding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.engine.numerics import assert_near, near
from tests.engine.training.conftest import random_load, tiny_model, training_section
from tests.engine.training.processes import on_ranks
from tests.matrix import also
from torch import Tensor

from coloop.algorithms.batch import split_units
from coloop.errors import BackendMissing, PlacementTimeout, StopRequested
from coloop.spec.dtypes import trained_dtypes
from coloop.workers.fingerprint import fingerprint
from coloop.workers.messages import LearnReply
from coloop.workers.training import ALONE, BACKENDS, Hooks, Learner, Ranks, TrainBatch, leave
from coloop.workers.training.forward import TokenModel
from coloop.workers.training.learner import UpdateFailed
from coloop.workers.training.ranks import join, passes_of, shares_of
from coloop.workers.training.states import ModelStates

TERMS = 10_000
"""More roundings than three updates of these models and rows have, there and back."""

NEEDS_DEEPSPEED = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed"),
]
ALONE_HERE = [
    ("single", 1),
    ("fsdp2", 1),
    ("replicas", 1),
    *(pytest.param(f"deepspeed-{stage}", 1, marks=NEEDS_DEEPSPEED) for stage in (1, 3)),
]
TOGETHER = [
    ("fsdp2", 2),
    ("fsdp2", 4),
    ("replicas", 2),
    ("replicas", 3),
    ("fsdp2-2", 2),
    also("fsdp2-2", 4),
    *(pytest.param(f"deepspeed-{stage}", 2, marks=NEEDS_DEEPSPEED) for stage in (1, 2, 3)),
]

STEADY = {"name": "adamw", "epsilon": 1.0, "weight_decay": 0.1}
"""AdamW that does not enlarge rounding: a step is at most as wide as the gradient."""
KL = {"coefficient": 0.1, "target": 0.01, "horizon": 100}


HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
"""That two ranks can share."""
NUMBERS = {"fsdp2": "tensor_parallel", "deepspeed": "zero_stage"}
"""What stands after the name of a backend."""


REPLICAS = "replicas"
"""`fsdp2` with model states that are whole on each rank."""


def section(backend: str, **fields: Any) -> Any:
    name, _, number = backend.replace(REPLICAS, "fsdp2").partition("-")
    return training_section(
        **{
            "lr": 0.5,
            "optimizer": STEADY,
            "mini_batch": 5,
            "micro_batch": 2,
            "backend": name,
            **({NUMBERS[name]: int(number)} if number else {}),
            **fields,
        }
    )


def build(
    backend: str,
    ranks: Ranks,
    *,
    seed: int = 0,
    model: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Learner:
    training = section(backend, **fields)
    dtypes = trained_dtypes(training)
    return BACKENDS[training.backend](
        tiny_model(seed=seed, **{**HEADS, **(model or {})}),
        training,
        group="solver",
        dtypes=dtypes,
        ranks=ranks,
        **({"is_spread": False} if backend == REPLICAS else {}),
    )


def exactly() -> Learner:
    """The same in float64."""
    training = section("single")
    model = tiny_model(**HEADS).double()
    return Learner(TokenModel(model), ModelStates(model, training.optimizer), group="solver")


def loads_of(update: int) -> list[TrainBatch]:
    """Rows of different lengths that no number of ranks divides, then rows beside pairs of another
    role with further texts that are measured first, then fewer rows than ranks."""
    if update == 0:
        return [random_load("grpo", size=11, kl=KL), random_load("sft", size=3, weight=0.3)]
    if update == 1:
        return [random_load("grpo", size=7, seed=1, kl=KL), random_load("kto", size=3, role="b")]
    return [random_load("grpo", size=1, seed=2, kl=KL)]


def go_on(backend: Learner, name: str, first: int, last: int) -> list[LearnReply]:
    return [backend.update(loads_of(one), section(name), seed=one) for one in range(first, last)]


def snapshot(backend: Learner) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in backend.weights()}


def three_updates(ranks: Ranks, name: str, folder: str) -> dict[str, Any]:
    """All that the contract asks of a backend, by one rank."""
    backend = build(name, ranks)
    backend.begin_phase(3)
    rows = random_load("grpo", size=5, seed=7, temperature=0.7)
    found: dict[str, Any] = {
        "scores": backend.score(rows.rows, temperature=0.7),
        "prepared": [
            row.log_probs_old
            for row in backend.prepare([rows], section(name), seed=0)[0].rows  # type: ignore[union-attr]
        ],
        "seen": backend.evaluate(loads_of(1), section(name)).metrics,
    }
    reports = go_on(backend, name, 0, 2)
    save(backend, ranks, Path(folder) / "state.pt")
    reports += go_on(backend, name, 2, 3)
    found["reports"] = reports
    found["weights"] = snapshot(backend)
    resumed = build(name, ranks, seed=99)
    resumed.load_state_dict(torch.load(Path(folder) / "state.pt", weights_only=True))
    found["rest"] = go_on(resumed, name, 2, 3)
    found["resumed"] = snapshot(resumed)
    found["stopped"] = stopped(backend, ranks, name)
    found["failed"] = failed(backend, name)
    found["after"] = snapshot(backend)
    return found


def save(backend: Learner, ranks: Ranks, path: Path) -> None:
    state = backend.state_dict()
    if ranks.is_first:
        torch.save(state, path)
    ranks.any(False)  # all wait until it is there


def stopped(backend: Learner, ranks: Ranks, name: str) -> bool:
    """A stop that only the last rank hears of, in the second micro-batch."""
    asked = iter([False, True] if ranks.rank == ranks.size - 1 else [False, False])
    hooks = Hooks(should_stop=lambda: next(asked))
    with pytest.raises(StopRequested):
        backend.update(loads_of(0), section(name), seed=5, hooks=hooks)
    return not backend.has_stepped


def failed(backend: Learner, name: str) -> str:
    """A loss that is not finite in one row of one rank."""
    load = random_load("grpo", size=5)
    rows = [*load.rows[:4], replace(load.rows[4], advantages=float("nan"))]
    with pytest.raises(UpdateFailed) as caught:
        backend.update([replace(load, rows=rows)], section(name), seed=6)
    assert not backend.has_stepped
    return str(caught.value)


@cache
def expected() -> dict[str, Any]:
    """By float64, and what `single` says of it."""
    exact = exactly()
    exact.begin_phase(3)
    rows = random_load("grpo", size=5, seed=7, temperature=0.7)
    scores = exact.score(rows.rows, temperature=0.7)
    seen = exact.evaluate(loads_of(1), section("single")).metrics
    reports = go_on(exact, "single", 0, 3)
    return {"scores": scores, "seen": seen, "reports": reports, "weights": snapshot(exact)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backends")


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """A backend that shards meets nobody here; its group goes with the module."""
    yield
    leave()


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    """What a backend did on so many ranks, once for all tests that look at it."""

    @cache
    def run(name: str, size: int) -> list[dict[str, Any]]:
        own = folder / f"{name}-{size}"
        own.mkdir()
        if size == 1:
            return [three_updates(ALONE, name, str(own))]
        return on_ranks(size, three_updates, folder, name, str(own))

    return run


CASES = [*ALONE_HERE, *TOGETHER]


def assert_weights(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    assert list(ours) == list(theirs)
    for name, weight in ours.items():
        assert_near(weight, theirs[name], terms=TERMS, scale=1.0)


def assert_reports(ours: list[LearnReply], theirs: list[LearnReply]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.samples, one.tokens) == (other.samples, other.tokens)
        for role, metrics in other.metrics.items():
            assert dict(one.metrics[role]) == near(dict(metrics), terms=TERMS)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "size"), CASES)
def test_losses_and_weights_are_those_of_float64(name: str, size: int, found: Any) -> None:
    for one in found(name, size):
        assert_reports(one["reports"], expected()["reports"])
        assert_weights(one["weights"], expected()["weights"])


@pytest.mark.parametrize(("name", "size"), CASES)
def test_every_rank_has_all_scores_and_metrics(name: str, size: int, found: Any) -> None:
    for one in found(name, size):
        for ours, old, theirs in zip(
            one["scores"], one["prepared"], expected()["scores"], strict=True
        ):
            assert_near(ours, theirs, terms=TERMS)
            assert_near(old, theirs, terms=TERMS)
        for role, metrics in expected()["seen"].items():
            assert dict(one["seen"][role]) == near(dict(metrics), terms=TERMS)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_some_updates_a_checkpoint_and_the_rest_equal_all_updates(
    name: str, size: int, found: Any
) -> None:
    for one in found(name, size):
        (rest,) = one["rest"]
        assert rest.metrics == one["reports"][2].metrics
        for weight, whole in one["weights"].items():
            assert torch.equal(one["resumed"][weight], whole)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_a_stop_and_a_loss_that_is_not_finite_leave_all_ranks_as_they_were(
    name: str, size: int, found: Any
) -> None:
    ranks = found(name, size)

    for one in ranks:
        assert one["stopped"]
        assert one["failed"] == ranks[0]["failed"]
        for weight, before in one["weights"].items():
            assert torch.equal(one["after"][weight], before)
    assert "the loss of actor.rewards is nan in optimizer step" in ranks[0]["failed"]
    assert "row4" in ranks[0]["failed"]


def resumed_by(ranks: Ranks, name: str, path: str) -> tuple[list[LearnReply], dict[str, Tensor]]:
    backend = build(name, ranks, seed=99)
    backend.load_state_dict(torch.load(path, weights_only=True))
    return go_on(backend, name, 2, 3), snapshot(backend)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (("fsdp2", 2), ("single", 1)),
        (("single", 1), ("fsdp2", 4)),
        (("fsdp2", 4), ("fsdp2", 2)),
        also(("fsdp2", 2), ("fsdp2", 3)),
        (("replicas", 2), ("single", 1)),
        (("fsdp2", 2), ("replicas", 3)),
        (("fsdp2-2", 2), ("single", 1)),
        also(("fsdp2", 4), ("fsdp2-2", 2)),
        also(("fsdp2-2", 2), ("fsdp2-2", 4)),
        pytest.param(("deepspeed-3", 2), ("single", 1), marks=NEEDS_DEEPSPEED),
        pytest.param(("fsdp2", 2), ("deepspeed-3", 1), marks=NEEDS_DEEPSPEED),
        pytest.param(("deepspeed-1", 2), ("deepspeed-2", 1), marks=NEEDS_DEEPSPEED),
    ],
)
def test_a_checkpoint_is_of_one_form_whoever_wrote_it(
    written: tuple[str, int], read: tuple[str, int], found: Any, folder: Path
) -> None:
    found(*written)
    path = str(folder / f"{written[0]}-{written[1]}" / "state.pt")
    name, size = read

    if size == 1:
        answers = [resumed_by(ALONE, name, path)]
    else:
        answers = on_ranks(size, resumed_by, folder, name, path)

    for reports, weights in answers:
        assert_reports(reports, expected()["reports"][2:])
        assert_weights(weights, expected()["weights"])


@pytest.mark.parametrize("name", ["fsdp2", REPLICAS])
def test_one_rank_is_single_bit_for_bit(name: str, found: Any) -> None:
    (alone,), (single,) = found(name, 1), found("single", 1)

    assert [one.metrics for one in alone["reports"]] == [one.metrics for one in single["reports"]]
    for name, weight in single["weights"].items():
        assert torch.equal(alone["weights"][name], weight)


@pytest.mark.parametrize("size", [2, 3])
def test_replicas_hold_the_same_bits(size: int, found: Any) -> None:
    ranks = found(REPLICAS, size)

    for moment in ("weights", "resumed", "after"):
        assert len({fingerprint(one[moment].items()) for one in ranks}) == 1
    assert fingerprint(ranks[0]["weights"].items()) != fingerprint(tiny_model().named_parameters())


def said_in_an_update(ranks: Ranks, fields: dict[str, Any]) -> list[str]:
    """What one rank says to the others while it learns."""
    backend = build(REPLICAS, ranks, **fields)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("all_reduce", "all_gather_object"):
            real = getattr(dist, name)
            patch.setattr(dist, name, partial(_noted, said, name, real))
        backend.update([random_load("grpo", size=11)], section(REPLICAS, **fields), seed=0)
    return said


def _noted(said: list[str], name: str, real: Any, *given: Any, **named: Any) -> Any:
    said.append(name)
    return real(*given, **named)


def test_replicas_speak_once_a_step_and_once_an_update(folder: Path) -> None:
    fields = {"mini_batch": None, "micro_batch": 2}
    for said in on_ranks(2, said_in_an_update, folder, fields):
        assert said == ["all_reduce", "all_gather_object"]


def stopped_alone(ranks: Ranks) -> tuple[bool, int]:
    """One rank of several is stopped before the only step of an update, in its second pass."""
    backend, training = build(REPLICAS, ranks), section(REPLICAS, mini_batch=None)
    rows, before, asked = [random_load("grpo", size=11)], snapshot(backend), count()
    hooks = Hooks(should_stop=lambda: next(asked) == 1 and not ranks.is_first)
    with pytest.raises(StopRequested):
        backend.update(rows, training, seed=5, hooks=hooks)
    assert not backend.has_stepped
    assert all(torch.equal(weight, before[name]) for name, weight in backend.weights())
    backend.update(rows, training, seed=5)
    return backend.has_stepped, next(asked)


def test_a_stop_that_one_replica_hears_of_stops_all_before_the_step(folder: Path) -> None:
    found = on_ranks(2, stopped_alone, folder)

    assert [has_stepped for has_stepped, _ in found] == [True, True]
    assert found[1][1] == 2  # it learned no further; the other one learned on
    assert found[0][1] == 3


SGD = {"optimizer": {"name": "sgd"}}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "steady": ({}, {}),
    "recomputed": ({**SGD, "gradient_checkpointing": True, "loss_chunk": 3}, {}),
    "recomputed steadily": ({"gradient_checkpointing": True, "loss_chunk": 3}, {}),
    "kept": ({**SGD, "reshard_after_forward": False, "epochs": 2}, {}),
    "tied": ({}, {"tie_word_embeddings": True}),
    "windows": (SGD, {"kind": "gemma3"}),
    "capped": ({}, {"kind": "gemma2", "final_logit_softcapping": 5.0}),
    "muon": ({"optimizer": {"name": "muon"}, "mini_batch": None}, {}),
    "lion": ({"optimizer": {"name": "lion"}, "mini_batch": None}, {}),
    "rmsprop": ({"optimizer": {"name": "rmsprop", "epsilon": 1.0}}, {}),
    "decayed": ({"optimizer": {"name": "sgd", "momentum": 0.5, "weight_decay": 0.1}}, {}),
    "bfloat16": ({"dtype": "bfloat16"}, {}),
    "shared, tied": (
        {"tensor_parallel": 2, "gradient_checkpointing": True, "loss_chunk": 3},
        {"tie_word_embeddings": True},
    ),
    "shared, windows": ({"tensor_parallel": 2, **SGD}, {"kind": "gemma3"}),
    "shared, biases": (
        {"tensor_parallel": 2, "reshard_after_forward": False},
        {"kind": "llama", "attention_bias": True},
    ),
}
OF_FSDP2 = {"reshard_after_forward", "tensor_parallel"}
LOOSE = {"muon": 2.0**-5, "bfloat16": 2.0**-7, "lion": 2 * 0.5}
"""Muon orthogonalises in bfloat16; a sign that rounding turns moves a weight by twice the rate."""


def variants(ranks: Ranks, name: str, names: list[str]) -> dict[str, dict[str, Tensor]]:
    found = {}
    for variant in names:
        fields, model = VARIANTS[variant]
        if not name.startswith("fsdp2"):
            fields = {key: fields[key] for key in fields if key not in OF_FSDP2}
        backend = build(name, ranks, model=model, **fields)
        loads = [random_load("grpo", size=7, entropy=0.1), random_load("sft", size=3)]
        backend.score(loads[0].rows)
        backend.reset_optimizer()
        backend.update(loads, section(name, **fields), seed=0)
        before = snapshot(backend)
        backend.load_state_dict(backend.state_dict() if ranks.size == 1 else shared(backend, ranks))
        assert all(torch.equal(weight, before[name]) for name, weight in backend.weights())
        found[variant] = before
        backend.score(loads[0].rows)
        backend.replace_weights({name: weight + 1.0 for name, weight in before.items()})
        backend.score(loads[0].rows)
        assert all(torch.equal(weight, before[name] + 1.0) for name, weight in backend.weights())
    return found


def shared(backend: Learner, ranks: Ranks) -> dict[str, Any]:
    """The first rank's state, as a file brings it to all."""
    return dict(ranks.gathered(backend.state_dict())[0])


def assert_alike(found: dict[str, dict[str, Tensor]]) -> None:
    for variant, expected in variants(ALONE, "single", list(found)).items():
        assert list(found[variant]) == list(expected)
        for name, weight in found[variant].items():
            if variant in LOOSE:
                assert float((weight - expected[name]).abs().max()) < LOOSE[variant]
            else:
                assert_near(weight, expected[name], terms=TERMS, scale=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [also("fsdp2"), REPLICAS])
def test_every_setting_trains_over_ranks_as_in_one_process(name: str, folder: Path) -> None:
    names = [one for one in VARIANTS if name == "fsdp2" or not OF_FSDP2 & set(VARIANTS[one][0])]
    for found in on_ranks(2, variants, folder, name, names):
        assert_alike(found)


@pytest.mark.deepspeed
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed")
@pytest.mark.parametrize("stage", [2, 3])
def test_every_setting_trains_with_zero_as_in_one_process(stage: int, folder: Path) -> None:
    names = ["steady", "recomputed steadily", "tied", "capped", "lion", "bfloat16"]
    for found in on_ranks(2, variants, folder, f"deepspeed-{stage}", names):
        assert_alike(found)


@pytest.mark.deepspeed
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed")
@pytest.mark.parametrize(
    ("fields", "told"),
    [({"optimizer": {"name": "muon"}}, "muon"), ({"zero_stage": 0}, "zero_stage")],
)
def test_what_deepspeed_does_not_do_is_refused_by_name(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(BackendMissing, match=told):
        build("deepspeed", ALONE, **fields)


@pytest.mark.skipif(find_spec("deepspeed") is not None, reason="DeepSpeed is here")
def test_deepspeed_that_is_not_there_says_who_brings_it() -> None:
    with pytest.raises(BackendMissing, match=r"coloop\[deepspeed\]"):
        build("deepspeed-2", ALONE)


def refusal(ranks: Ranks) -> str:
    """Of a model whose one head for keys two ranks cannot share."""
    with pytest.raises(BackendMissing) as caught:
        build("fsdp2-2", ranks, model={"num_key_value_heads": 1})
    return str(caught.value)


@pytest.mark.slow
def test_a_model_whose_layers_ranks_cannot_share_is_refused(folder: Path) -> None:
    for told in on_ranks(2, refusal, folder):
        assert "`training.tensor_parallel: 2` does not divide the 1 heads for keys" in told


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlacementTimeout, match=r"of 3 ranks 1, 2 did not join"):
        join(Ranks(rank=0, size=3), rendezvous=f"file://{tmp_path}/meet", timeout_seconds=0.2)


def test_single_is_one_process() -> None:
    with pytest.raises(BackendMissing, match="`fsdp2`"):
        build("single", Ranks(rank=0, size=2))


def test_shares_are_even_in_tokens_and_passes_equal_in_number() -> None:
    lengths = [9, 1, 1, 1, 8, 1, 1]
    ranks = [Ranks(rank=rank, size=3) for rank in range(3)]

    shares = shares_of(range(7), lengths, 3)
    pairs = partial(split_units, rows=2)
    passes = [passes_of(one, [6, 5, 4, 3, 2, 1, 0], lengths, pairs) for one in ranks]

    assert sorted(unit for share in shares for unit in share) == list(range(7))
    assert sorted(sum(lengths[unit] for unit in share) for share in shares) == [5, 8, 9]
    assert {len(own) for own in passes} == {3}
    assert sorted(row for own in passes for part in own for row in part) == list(range(7))
    assert passes_of(ALONE, [2, 0], lengths, split_units) == [[2, 0]]
    apart = [passes_of(one, [6, 0], lengths, pairs, is_in_step=False) for one in ranks]
    assert apart == [[[0]], [[6]], []]
