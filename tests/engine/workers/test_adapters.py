"""Roles with an adapter each on one base: held once, learned apart, saved once."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import near, rounding
from tests.engine.training.processes import on_ranks
from tests.engine.workers.test_worker import ACTOR, SCRATCH, learned, settings_of
from tests.matrix import also
from torch import Tensor

from coloop.data.tables import Tokens
from coloop.errors import CheckpointError, ModelUnavailable
from coloop.models.folder import is_own, read_adapter, weights_in
from coloop.plan.compile import compile_plan
from coloop.plan.settings.survey import Survey
from coloop.runtime.roles.rows.texts import drawn_sequence
from coloop.spec.io import from_dict
from coloop.workers.messages import LearnRequest, PromptRequest, Sampling
from coloop.workers.sync import ChecksumVerifier, FilesChannel
from coloop.workers.training import ALONE, Ranks, leave
from coloop.workers.training.adapters import FrozenAdapter
from coloop.workers.worker import Worker

pytestmark = pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")

LORA = {"lora": {"rank": 2}}
ON_BASE = {"type": "shared", "with": "base", **LORA}
NODES: dict[str, Any] = {
    "sums": {"kind": "dataset", "source": {"type": "inline", "rows": [{"prompt": "1+1="}]}},
    "base": {"kind": "reference", "model": SCRATCH},
    "actor": {**ACTOR, "model": ON_BASE},
    "twin": {**ACTOR, "model": ON_BASE},
    "critic": {"kind": "critic", "model": ON_BASE, "training": ACTOR["training"]},
    "before": {"kind": "reference", "model": {"type": "snapshot", "of": "actor", "ema": 0.5}},
    "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
}
EDGES = [
    "sums.rows -> actor.prompts",
    "sums.rows -> twin.prompts",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
    "twin.rollouts -> exact.rollouts",
    "exact.scores -> twin.rewards",
    "actor.rollouts -> critic.rollouts",
    "actor.returns -> critic.returns",
    "critic.values -> actor.values",
    "actor.rollouts -> base.rollouts",
    "base.log_probs -> actor.reference",
    "twin.rollouts -> before.rollouts",
    "before.log_probs -> twin.reference",
]
LEARNERS = ("actor", "twin", "critic")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    yield
    leave()


def make(
    folder: Path,
    nodes: dict[str, Any] = NODES,
    backend: str = "single",
    ranks: Ranks = ALONE,
    **training: Any,
) -> Worker:
    changed = {
        name: {**node, "training": {**ACTOR["training"], "backend": backend, **training}}
        if name in LEARNERS
        else node
        for name, node in nodes.items()
    }
    settings = settings_of(changed, EDGES, folder)
    host = Worker(replace(settings, rank=ranks.rank, ranks=ranks.size))
    host.build()
    return host


def write(host: Worker, node: str) -> Tokens:
    request = PromptRequest(id="sums:0.0", prompt="1+1=", seeds=(7,))
    return host.generate(node, node, [request], Sampling(max_new_tokens=4, temperature=1.0))[0][0]


def learn(host: Worker, node: str, tokens: Tokens) -> None:
    items = {(node, "rewards"): (learned("row", tokens),)}
    host.learn(LearnRequest(group=node, items=items, seed=0))


def said(host: Worker, node: str, tokens: Tokens) -> list[float]:
    """What weights say of a text: log-probs, of a critic values."""
    reading = "values" if node == "critic" else "log_probs"
    found = host.score(node, node, [drawn_sequence("row", tokens)], 1.0, reading)
    return found[0].tolist()  # type: ignore[union-attr]


def held(host: Worker, group: str) -> dict[str, Tensor]:
    """The weights of a group as they lie in the process."""
    home = host._homes[group]
    adapted = home.weights.adapted
    model: Any = home.weights.loaded.model
    if isinstance(adapted, FrozenAdapter):
        model = adapted.model
    elif adapted is not None:
        adapted.adapter()  # what the last pass has gathered is let go
        model = home.backend.model  # type: ignore[union-attr]
    named = model.named_parameters()
    return {name: getattr(one, "_local_tensor", one.detach()) for name, one in named}


def places(host: Worker, group: str) -> dict[int, int]:
    """Where the frozen weights of a group lie, and how many bytes each has."""
    frozen = (one for name, one in held(host, group).items() if not is_own(name))
    return {one.data_ptr(): one.nbytes for one in frozen}


def own(host: Worker, group: str) -> dict[str, Tensor]:
    adapted = host._homes[group].weights.adapted
    assert adapted is not None
    return {name: one.clone() for name, one in adapted.adapter().items()}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


@pytest.mark.slow
def test_roles_stand_on_one_base_and_learn_their_own_adapter(tmp_path: Path) -> None:
    host = make(tmp_path)
    text = write(host, "actor")
    start = {node: said(host, node, text) for node in ("base", *LEARNERS, "before")}
    began = {node: own(host, node) for node in LEARNERS}
    bits = {name: one.clone() for name, one in held(host, "base").items()}

    learn(host, "actor", text)
    synced = host.sync("actor")

    trunk = places(host, "base")
    assert places(host, "actor") == places(host, "twin") == places(host, "before") == trunk
    assert places(host, "critic").items() <= trunk.items()  # it has no head of words
    assert start["actor"] == start["twin"] == start["before"]
    # A block with adapters is several functions, one without is one: they round differently.
    assert start["actor"] == near(start["base"], terms=1000)
    after = {node: said(host, node, text) for node in start}
    assert after.pop("actor") != start.pop("actor")
    assert after == start
    assert not same(own(host, "actor"), began["actor"])
    assert all(same(own(host, node), began[node]) for node in ("twin", "critic"))
    assert same(held(host, "base"), bits)
    learners = [host._homes[node].backend.state_dict() for node in LEARNERS]  # type: ignore[union-attr]
    assert all(state["model"] == {} for state in learners)
    assert synced is not None
    assert synced[0].fingerprint == synced[1].fingerprint


def test_what_is_priced_is_what_is_held(tmp_path: Path) -> None:
    host = make(tmp_path)

    priced = Survey(host._spec).weights
    by_place = {
        one.data_ptr(): one.nbytes for group in priced for one in held(host, group).values()
    }

    assert sum(by_place.values()) == sum(one.states.weights for one in priced.values())
    assert priced["actor"].trainable == sum(one.numel() for one in own(host, "actor").values())
    assert priced["critic"].trainable == sum(one.numel() for one in own(host, "critic").values())


def test_ranks_alone_hold_the_parts_of_one_base_once(tmp_path: Path) -> None:
    whole, spread = make(tmp_path / "w"), make(tmp_path / "s", backend="fsdp2")
    text = write(whole, "actor")
    for host in (whole, spread):
        for node in ("actor", "twin"):
            learn(host, node, text)
        said(host, "critic", text)

    assert places(spread, "actor") == places(spread, "twin")
    assert places(spread, "critic").items() <= places(spread, "actor").items()
    for node in LEARNERS:
        for name, weight in own(spread, node).items():
            other = own(whole, node)[name]
            assert torch.allclose(weight, other, atol=rounding(10_000), rtol=0), (node, name)


@pytest.mark.slow
def test_an_engine_is_sent_what_the_adapter_changes_and_proves_the_whole(tmp_path: Path) -> None:
    host = make(tmp_path)
    text = write(host, "actor")
    learn(host, "actor", text)

    transfer, sent = host.send("actor", [tmp_path], "float32")
    assert transfer is not None
    names = {name for name, _ in FilesChannel().receive(transfer)}
    got = host.receive("actor", transfer, sent.probe)

    assert names
    assert all(".layers." in name and "norm" not in name for name in names)
    assert ChecksumVerifier().check(sent, got).fingerprint == sent.fingerprint
    moved, fixed = (write(host, node).log_probs for node in ("actor", "twin"))
    assert list(moved) != list(fixed)


def test_a_snapshot_follows_the_adapter_alone(tmp_path: Path) -> None:
    host = make(tmp_path)
    text = write(host, "actor")
    learn(host, "actor", text)
    first, last = own(host, "before"), own(host, "actor")

    host.follow("before", "actor", 0.0)
    assert said(host, "before", text) == said(host, "actor", text)
    learn(host, "actor", text)
    host.follow("before", "actor", 0.5)

    assert places(host, "before") == places(host, "base")
    assert not same(first, last)
    for name, weight in own(host, "before").items():
        assert torch.allclose(weight, (last[name] + own(host, "actor")[name]) / 2)


@pytest.mark.slow
def test_a_checkpoint_has_the_base_once_and_each_adapter_apart(tmp_path: Path) -> None:
    host = make(tmp_path)
    text = write(host, "actor")
    for node in ("actor", "twin"):
        learn(host, node, text)
    host.follow("before", "actor", 0.5)
    host.save(str(tmp_path / "first"))
    learn(host, "twin", text)
    host.save(str(tmp_path / "second"), str(tmp_path / "first"))

    resumed = make(tmp_path)
    resumed.load(str(tmp_path / "second"))

    files = {
        path.stat().st_ino
        for step in ("first", "second")
        for path in (tmp_path / step).rglob("model.safetensors")
    }
    assert len(files) == 1
    for node in (*LEARNERS, "before"):
        folder = tmp_path / "second" / node
        assert same(own(resumed, node), own(host, node))
        assert same(read_adapter(folder), own(host, node))
        merged = dict(weights_in(folder))
        named = dict(host._homes[node].weights.named())
        assert all(torch.equal(merged[name], one) for name, one in named.items())
    for one in (host, resumed):
        learn(one, "actor", text)
        learn(one, "twin", text)
    for node in LEARNERS:
        assert same(own(resumed, node), own(host, node))
        assert said(resumed, node, text) == said(host, node, text)


def saved_over(ranks: Ranks, folder: Path, training: dict[str, Any], text: Tokens) -> list[bool]:
    """Whether what ranks save together is what they and a host of theirs then hold."""
    first = make(folder, backend="fsdp2", ranks=ranks, **training)
    for node in ("actor", "twin"):
        learn(first, node, text)
    first.follow("before", "actor", 0.0)
    for step in ("one", "two"):
        first.save(str(folder / step), str(folder / "one") if step == "two" else None)
    ranks.any(True)  # rank 0 has written
    second = make(folder, backend="fsdp2", ranks=ranks, **training)
    second.load(str(folder / "two"))
    return [same(own(first, node), own(second, node)) for node in (*LEARNERS, "before")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "bases"),
    [
        also({}, 1, id="whole in each"),
        # What ranks hold in parts, and what each holds whole: the references' base.
        pytest.param({"reshard_after_forward": True}, 2, id="in parts"),
    ],
)
def test_ranks_save_and_load_adapters_together(
    tmp_path: Path, training: dict[str, Any], bases: int
) -> None:
    text = write(make(tmp_path), "actor")

    answers = on_ranks(2, saved_over, tmp_path, tmp_path, training, text)

    assert answers == [[True] * 4] * 2
    files = {path.stat().st_ino for path in tmp_path.rglob("model.safetensors")}
    assert len(files) == bases
    moved, kept = (read_adapter(tmp_path / "two" / node) for node in ("before", "critic"))
    assert any(bool(one.any()) for name, one in moved.items() if "lora_B" in name)
    assert not any(bool(one.any()) for name, one in kept.items() if "lora_B" in name)


def test_a_role_in_another_pool_has_the_same_base_there(tmp_path: Path) -> None:
    host = make(tmp_path)
    pools = {"one": {"workers": 1}, "two": {"workers": 1}}
    nodes = {**NODES, "twin": {**NODES["twin"], "pool": "two"}}
    document = {"coloop": 1, "name": "small", "nodes": nodes, "edges": EDGES}
    hardware = {"preset": "cpu", "pools": pools}
    spec = from_dict({**document, "schedule": {"steps": 1}, "hardware": hardware}).spec
    assert spec is not None
    plan = compile_plan(spec)
    settings = settings_of(NODES, EDGES, tmp_path)

    other = Worker(replace(settings, spec=spec, weights=plan.weights, pool="two"))
    other.build()

    found = {one.name: (one.base, one.beside) for one in plan.weights if one.base}
    assert found["actor"] == ("base", "base")
    assert found["twin"] == ("base", None)
    assert set(other._homes) == {"twin"}
    ours, theirs = held(other, "twin"), held(host, "twin")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_checkpoint_with_and_one_without_an_adapter_do_not_mix(tmp_path: Path) -> None:
    plain = {**NODES, "actor": {**ACTOR, "model": {"type": "copy", "of": "base"}}}
    plain["before"] = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
    with_one, without = make(tmp_path), make(tmp_path, plain)
    with_one.save(str(tmp_path / "with"))
    without.save(str(tmp_path / "without"))

    with pytest.raises(CheckpointError, match=r"nodes\.\w+\.model.* no `lora`"):
        without.load(str(tmp_path / "with"))
    with pytest.raises(CheckpointError, match=r"nodes\.\w+\.model\.lora.* needs one"):
        with_one.load(str(tmp_path / "without"))


@pytest.mark.slow
def test_who_owns_the_base_may_learn_an_adapter_too(tmp_path: Path) -> None:
    first = make(tmp_path)
    first.save(str(tmp_path / "saved"))
    owner = {"type": "pretrained", "path": str(tmp_path / "saved" / "base"), **LORA}
    nodes = {
        **NODES,
        "base": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "actor": {**ACTOR, "model": owner},
        "twin": {**ACTOR, "model": {"type": "shared", "with": "actor", **LORA}},
        "critic": {"kind": "critic", "model": {"type": "copy", "of": "twin", **LORA}},
    }

    host = make(tmp_path, nodes)

    text = write(host, "actor")
    assert places(host, "actor") == places(host, "twin") == places(host, "base")
    assert places(host, "critic").items() <= places(host, "actor").items()
    assert said(host, "actor", text) == said(first, "actor", text)


def test_a_layer_that_is_not_there_is_told_with_its_node(tmp_path: Path) -> None:
    wrong = {"type": "shared", "with": "base", "lora": {"targets": ["query"]}}

    with pytest.raises(ModelUnavailable, match=r"`twin`: `model\.lora\.targets`.*query.*q_proj"):
        make(tmp_path, {**NODES, "twin": {**ACTOR, "model": wrong}})


def test_a_copy_of_weights_with_an_adapter_has_memory_of_its_own(tmp_path: Path) -> None:
    """Who learns all weights of a copy must not move the frozen ones that the adapter has."""
    host = make(tmp_path)

    copied = host._homes["actor"].weights.copied().model

    theirs = {weight.data_ptr() for weight in copied.parameters()}
    assert theirs.isdisjoint(places(host, "actor"))
