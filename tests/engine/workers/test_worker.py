"""A pool's process: weights built and copied, ids that fit their tokenizer, steps of texts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import near, rounding
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from coloop.algorithms.batch import Pair, Sequence, split_units
from coloop.data.arrays import ids_of
from coloop.data.tables import Tokens
from coloop.errors import DataError, StopRequested
from coloop.models import character_tokenizer, load_weights
from coloop.models.folder import weights_in
from coloop.plan.compile import compile_plan
from coloop.runtime.roles.rows.texts import drawn_sequence
from coloop.spec.io import from_dict
from coloop.workers.encoder import Encoder
from coloop.workers.initial_weights import InitialWeights
from coloop.workers.messages import (
    LearnReply,
    LearnRequest,
    Poll,
    PromptRequest,
    Sampling,
    TooLong,
)
from coloop.workers.settings import HostSettings
from coloop.workers.training import leave
from coloop.workers.training.forward import TokenModel
from coloop.workers.weights import HeldWeights
from coloop.workers.worker import Worker

SCRATCH = {"type": "scratch", "architecture": "tiny-qwen3"}
ACTOR: dict[str, Any] = {
    "kind": "actor",
    "model": SCRATCH,
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4, "greedy_extra": True},
    "algorithm": {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}},
    "training": {"optimizer": {"name": "sgd", "lr": 1.0}},
}
NODES = {
    "sums": {"kind": "dataset", "source": {"type": "inline", "rows": [{"prompt": "1+1="}]}},
    "actor": ACTOR,
    "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
}
EDGES = [
    "sums.rows -> actor.prompts",
    "sums.rows -> actor.demonstrations",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
]

MakeHost = Callable[..., Worker]


@pytest.fixture
def make_host(tmp_path: Path) -> MakeHost:
    """The host of a small loop."""

    def make(nodes: Mapping[str, Any] = NODES, edges: list[str] = EDGES) -> Worker:
        host = Worker(settings_of(nodes, edges, tmp_path))
        host.build()
        return host

    return make


def settings_of(nodes: Mapping[str, Any], edges: list[str], root: Path) -> HostSettings:
    parsed = from_dict(
        {
            "coloop": 1,
            "name": "small",
            "nodes": dict(nodes),
            "edges": edges,
            "schedule": {"steps": 1},
            "hardware": {"preset": "cpu"},
        }
    )
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    plan = compile_plan(parsed.spec)
    return HostSettings(spec=parsed.spec, weights=plan.weights, root=root, seed=0, threads=1)


def write(host: Worker, temperature: float) -> Tokens:
    """One completion of the actor."""
    request = PromptRequest(id="sums:0.0", prompt="1+1=", seeds=(7,))
    sampling = Sampling(max_new_tokens=4, temperature=temperature)
    replies = host.generate("actor", "actor", [request], sampling)
    return replies[0][0]


def score(host: Worker, group: str, node: str, examples: Any, temperature: float) -> list[Any]:
    """What the host says of the examples, as lists, which compare by what they hold."""
    found = host.score(group, node, examples, temperature)
    return [one if isinstance(one, TooLong) else one.tolist() for one in found]


def learned(name: str, tokens: Tokens, *, port: str = "rewards") -> Sequence:
    """The tokens as they come to the update at a port."""
    heat = tokens.temperature if port == "rewards" else 1.0
    return drawn_sequence(name, tokens, advantages=1.0, temperature=heat)


def learn(host: Worker, *tokens: Tokens, port: str = "rewards") -> LearnReply:
    """One update from completions."""
    items = tuple(learned(f"row{place}", one, port=port) for place, one in enumerate(tokens))
    return host.learn(LearnRequest(group="actor", items={("actor", port): items}, seed=0))


def test_rows_of_different_temperatures_meet_the_policy_each_at_its_own(
    make_host: MakeHost,
) -> None:
    host = make_host()

    reply = learn(host, write(host, 0.7), write(host, 0.0), write(host, 1.3))

    # Logits of up to 10 that go through more than a thousand roundings on each side.
    assert reply.metrics["actor"]["mismatch/max"] < rounding(3000, scale=10.0)


def test_token_ids_of_another_tokenizer_are_refused(make_host: MakeHost) -> None:
    host = make_host()
    own = write(host, 1.0)
    foreign = Tokens(
        prompt_ids=[5],
        token_ids=[6, 7],
        loss_mask=[True, True],
        log_probs=[-1.0, -1.0],
        writer="teacher",
        tokenizer="of-another-family",
    )

    assert (own.writer, own.tokenizer) == ("actor", Encoder(character_tokenizer()).mark)
    for reads in (
        lambda: learn(host, own, foreign, port="demonstrations"),
        lambda: score(host, "actor", "actor", [drawn_sequence("row", foreign)], 1.0),
    ):
        with pytest.raises(DataError, match="teacher with a different tokenizer") as found:
            reads()
        assert "{{ teacher.completion }}" in str(found.value)


def test_weights_are_built_on_the_device_of_their_pool(tmp_path: Path) -> None:
    nodes = {**NODES, "first": {"kind": "reference", "model": SCRATCH}}
    edges = [*EDGES, "actor.rollouts -> first.rollouts", "first.log_probs -> actor.reference"]
    settings = settings_of(nodes, edges, tmp_path)
    plans = {weights.name: weights for weights in settings.weights}

    initial = InitialWeights(spec=settings.spec, plans=plans, root=tmp_path, seed=0, device="meta")

    assert initial.model("first", {}).model.device == torch.device("meta")


@pytest.mark.slow
def test_a_copy_of_frozen_weights_learns_and_leaves_them_as_they_are(make_host: MakeHost) -> None:
    base = {"kind": "reference", "model": SCRATCH}
    actor = {**ACTOR, "model": {"type": "copy", "of": "base"}}
    edges = [*EDGES, "actor.rollouts -> base.rollouts", "base.log_probs -> actor.reference"]
    host = make_host({**NODES, "actor": actor, "base": base}, edges)
    example = drawn_sequence("row", write(host, 1.0))
    before = score(host, "base", "base", [example], 1.0)
    assert score(host, "actor", "actor", [example], 1.0) == before

    learn(host, write(host, 1.0))

    assert score(host, "base", "base", [example], 1.0) == before
    assert score(host, "actor", "actor", [example], 1.0) != before


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("ab", [2]),
        ("ab\ncd", [2, 5]),
        ("ab\n\n \ncd\n", [2, 9]),
        ("\n\nab\ncd\n\n", [4, 9]),
        ("", []),
        (" \n", []),
    ],
)
def test_a_step_is_a_line_that_is_not_blank(
    text: str, ends: list[int], make_host: MakeHost
) -> None:
    ids = Encoder(character_tokenizer()).target(text)

    assert make_host().step_ends("actor", "actor", [ids, ids], "\n") == [ends, ends]


def test_a_step_ends_with_the_token_that_brings_its_separator() -> None:
    words = ["<end>", "é", "a\n", "b", "\n\n", "c\nd\ne"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_decoding(
            Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}))
        ),
        eos_token="<end>",
        clean_up_tokenization_spaces=False,
    )
    encoder = Encoder(tokenizer)

    assert encoder.step_ends(ids_of([2, 1, 3, 4, 3, 0]), "\n") == [0, 3, 5]
    assert encoder.step_ends(ids_of([3, 5, 3]), "\n") == [1, 1, 2]


def _decoding(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


@pytest.fixture
def in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Micro-batches of a row or two."""
    monkeypatch.setattr(
        TokenModel,
        "split",
        lambda _, units, lengths, __=None, rows=None: split_units(
            units, lengths, rows=rows, tokens=16
        ),
    )


def worked(host: Worker, how: str, count: int) -> Callable[[], object]:
    """One of the ways in which a host reads rows without learning from them."""
    tokens = [write(host, 1.0) for _ in range(count)]
    examples = [drawn_sequence(f"row{place}", one) for place, one in enumerate(tokens)]
    pairs = [Pair(id=one.id, chosen=one, rejected=one) for one in examples[: count // 2]]
    items = tuple(
        replace(one, advantages=1.0, log_probs_reference=[0.0] * len(one.token_ids))
        for one in examples
    )
    order = LearnRequest(group="actor", items={("actor", "rewards"): items}, seed=0)
    ways: dict[str, Callable[[], object]] = {
        "score": lambda: score(host, "actor", "actor", examples, 1.0),
        "score_pairs": lambda: host.score_pairs("actor", "actor", pairs),
        "evaluate": lambda: host.evaluate(order),
        "old log-probs": lambda: host.learn(replace(order, overrides={MINI_BATCH: count // 2})),
    }
    return ways[how]


MINI_BATCH = "nodes.actor.training.mini_batch"
READING = ("score", "score_pairs", "evaluate", "old log-probs")


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", READING)
def test_a_host_that_reads_rows_says_how_far_it_is(
    how: str, make_host: MakeHost, in_small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    work = worked(host, how, 6)
    seen: list[Poll] = []
    outputs = TokenModel.outputs

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(host.poll())
        return outputs(*arguments, **options)

    monkeypatch.setattr(TokenModel, "outputs", watched)

    work()

    done = [poll.done for poll in seen]
    assert len(done) > 2
    assert done == sorted(set(done))
    assert (host.poll().done, host.poll().unit) == (host.poll().total, "rows")


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", READING)
def test_a_host_that_reads_rows_gives_up_when_asked(
    how: str, make_host: MakeHost, in_small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    work = worked(host, how, 6)
    before = score(host, "actor", "actor", [drawn_sequence("row", write(host, 1.0))], 1.0)
    calls: list[int] = []
    outputs = TokenModel.outputs

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        host.interrupt()
        return outputs(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(TokenModel, "outputs", interrupted)
        with pytest.raises(StopRequested):
            work()

    assert len(calls) == 1
    assert not host.has_changed("actor")
    assert score(host, "actor", "actor", [drawn_sequence("row", write(host, 1.0))], 1.0) == before


def test_rows_beyond_the_positions_are_neither_scored_nor_learned(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host()
    short, long = (
        drawn_sequence(f"row{count}", replace(write(host, 1.0), prompt_ids=[5] * count))
        for count in (3, 90)
    )
    monkeypatch.setattr(HeldWeights, "positions", property(lambda self: 50))
    alone = score(host, "actor", "actor", [short], 1.0)
    found = TooLong(tokens=len(long.token_ids), limit=50)

    first, among, last = score(host, "actor", "actor", [long, short, long], 1.0)
    assert (first, last) == (found, found)
    assert among == pytest.approx(alone[0], rel=1e-5)
    pairs = [
        Pair(id=f"{a.id}/{b.id}", chosen=a, rejected=b)
        for a, b in ((short, short), (short, long), (long, short))
    ]
    both, *beyond = host.score_pairs("actor", "actor", pairs)
    assert not isinstance(both, TooLong)
    for side in ("chosen", "rejected"):
        assert both[side].tolist() == pytest.approx(alone[0], rel=1e-5)
    assert beyond == [found, found]

    items = tuple(replace(one, advantages=1.0) for one in (short, long))
    order = LearnRequest(group="actor", items={("actor", "rewards"): items}, seed=0)
    assert host.evaluate(order).too_long == {"actor": (found,)}
    reply = host.learn(order)
    assert (reply.too_long, reply.samples) == ({"actor": (found,)}, 1)
    assert host.evaluate(replace(order, items={})).too_long == {}


def test_a_saved_host_is_what_it_was(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host()
    row = write(host, 1.0)
    example = drawn_sequence("row", row)
    learn(host, row)
    saved = score(host, "actor", "actor", [example], 1.0)
    host.save(str(tmp_path / "saved"))
    learn(host, row)
    assert score(host, "actor", "actor", [example], 1.0) != saved

    host.load(str(tmp_path / "saved"))

    assert score(host, "actor", "actor", [example], 1.0) == saved
    assert host.version("actor") == 1


def test_a_call_says_nothing_of_the_call_before_it(make_host: MakeHost) -> None:
    host = make_host()
    score(host, "actor", "actor", [drawn_sequence("row", write(host, 1.0))], 1.0)
    assert host.poll().done == 1
    host.interrupt()

    host.step_ends("actor", "actor", [[5]], "\n")

    poll = host.poll()
    assert (poll.done, poll.total, poll.unit) == (0, 0, "")
    assert learn(host, write(host, 1.0)).samples == 1


def test_each_update_has_the_overrides_that_came_with_it(make_host: MakeHost) -> None:
    host = make_host()
    row = learned("row", write(host, 1.0))
    order = LearnRequest(group="actor", items={("actor", "rewards"): (row,)}, seed=0)
    rate = "nodes.actor.training.optimizer.lr"

    rates = [
        host.learn(replace(order, overrides=overrides)).metrics["actor"]["lr"]
        for overrides in ({}, {rate: 0.5}, {rate: 0.5}, {rate: 0.25}, {})
    ]

    assert rates == [1.0, 0.5, 0.5, 0.25, 1.0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["single", "fsdp2"])
def test_a_learner_that_follows_others_goes_on_from_their_weights(
    backend: str, make_host: MakeHost
) -> None:
    base = {"kind": "reference", "model": SCRATCH}
    training = {**ACTOR["training"], "backend": backend}
    actor = {**ACTOR, "model": {"type": "copy", "of": "base"}, "training": training}
    edges = [*EDGES, "actor.rollouts -> base.rollouts", "base.log_probs -> actor.reference"]
    try:
        host = make_host({**NODES, "actor": actor, "base": base}, edges)
        text = write(host, 1.0)
        example = drawn_sequence("row", text)
        learn(host, text)
        moved = score(host, "actor", "actor", [example], 1.0)

        host.follow("actor", "base", 0.0)

        assert host.version("actor") == 2
        followed = score(host, "actor", "actor", [example], 1.0)
        assert followed == score(host, "base", "base", [example], 1.0)
        learn(host, text)
        assert score(host, "actor", "actor", [example], 1.0) == moved != followed
    finally:
        leave()


@pytest.mark.slow
@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_a_backend_that_spreads_weights_is_a_host_like_any_other(
    make_host: MakeHost, tmp_path: Path, ema: float
) -> None:
    """What it writes, learns, pushes, hands to a snapshot and saves."""

    def nodes(backend: str) -> dict[str, Any]:
        snapshot = {"type": "snapshot", "of": "actor", "refresh": {"every": 1}, "ema": ema}
        return {
            **NODES,
            "actor": {**ACTOR, "training": {**ACTOR["training"], "backend": backend}},
            "before": {"kind": "reference", "model": snapshot},
        }

    def go(backend: str) -> tuple[Worker, list[Any]]:
        edges = [*EDGES, "actor.rollouts -> before.rollouts", "before.log_probs -> actor.reference"]
        host = make_host(nodes(backend), edges)
        seen: list[Any] = []
        for _ in range(2):
            text = write(host, 1.0)
            seen.append((text, learn(host, text).metrics))
            synced = host.sync("actor")
            assert synced is not None
            assert {one.fingerprint for one in synced} == {synced[0].fingerprint}
            host.follow("before", "actor", ema)
            seen.append(score(host, "before", "before", [drawn_sequence("a", text)], 1.0))
        return host, seen

    try:
        whole, expected = go("single")
        spread, found = go("fsdp2")
        whole.save(str(tmp_path / "whole"))
        spread.save(str(tmp_path / "spread"))
        spread.load(str(tmp_path / "whole"))
        again = write(spread, 1.0)
    finally:
        leave()

    assert found == expected
    assert again == write(whole, 1.0)
    for file in ("actor", "before"):
        ours, theirs = (load_weights(tmp_path / kind / file) for kind in ("spread", "whole"))
        assert all(torch.equal(ours[name], weight) for name, weight in theirs.items())


@pytest.mark.sample(1)
@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
@pytest.mark.parametrize("backend", ["single", "fsdp2"])
def test_an_adapter_writes_saves_and_goes_on_as_merged_weights(
    backend: str, make_host: MakeHost, tmp_path: Path
) -> None:
    base = {"kind": "reference", "model": SCRATCH}
    model = {"type": "copy", "of": "base", "at": "later", "lora": {"rank": 2}}
    actor = {**ACTOR, "model": model, "training": {**ACTOR["training"], "backend": backend}}
    edges = [*EDGES, "actor.rollouts -> base.rollouts", "base.log_probs -> actor.reference"]
    nodes = {**NODES, "actor": actor, "base": base}
    try:
        host = make_host(nodes, edges)
        text = write(host, 1.0)
        example = drawn_sequence("row", text)
        begun = [score(host, name, name, [example], 1.0)[0] for name in ("actor", "base")]
        for _ in range(2):
            learn(host, text)
        synced = host.sync("actor")
        host.save(str(tmp_path / "saved"))
        resumed = make_host(nodes, edges)
        resumed.load(str(tmp_path / "saved"))
        learned = [score(host, "actor", "actor", [example], 1.0)]
        learn(host, text)
        learn(resumed, text)
        after = [score(one, "actor", "actor", [example], 1.0) for one in (host, resumed)]
        host.follow("actor", "base", 0.0)
        followed = score(host, "actor", "actor", [example], 1.0)
        host.save(str(tmp_path / "followed"))
        resumed.load(str(tmp_path / "followed"))
        again = score(resumed, "actor", "actor", [example], 1.0)
        start = score(host, "base", "base", [example], 1.0)
    finally:
        leave()

    assert synced is not None
    assert synced[0].fingerprint == synced[1].fingerprint
    assert after[0] == after[1] != learned[0]
    assert followed == again != learned[0]
    # A block with adapters is several functions, one without is one: they round differently.
    assert begun[0] == near(begun[1], terms=1000)
    assert followed[0] == near(start[0], terms=1000)
    saved, plain = (dict(weights_in(tmp_path / "saved" / name)) for name in ("actor", "base"))
    moved = {name for name, weight in saved.items() if not torch.equal(weight, plain[name])}
    assert set(saved) == set(plain)
    assert moved
    assert all(".layers." in name and "norm" not in name for name in moved)
