"""Weights that ranks hold in parts begin without a whole model in any process, and are the same
bits as weights that one process reads whole."""

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tests.engine.memory_watch import ResizedWatch
from tests.engine.models.architectures import make_model
from tests.engine.training.conftest import random_load, tiny_model
from tests.engine.training.processes import on_ranks
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from coloop.models import character_tokenizer, save_hf
from coloop.models.heads import with_head
from coloop.models.tokenizer import byte_tokenizer
from coloop.plan import weight_buckets
from coloop.plan.compile import compile_plan
from coloop.spec.groups import training_of
from coloop.spec.io import from_dict
from coloop.spec.nodes import model_of
from coloop.workers.initial_weights import Home, InitialWeights
from coloop.workers.training import Ranks, leave
from coloop.workers.training.adapters import FrozenAdapter, add_adapter
from coloop.workers.training.forward import TokenModel

Document = dict[str, Any]

SCRATCH = {"type": "scratch", "architecture": "tiny-qwen3"}
SPREAD = {"backend": "fsdp2", "reshard_after_forward": True}
GPUS = {"nodes": 1, "gpus_per_node": 2, "gpu": "H100-80GB"}
"""Frozen weights are spread over GPUs alone; here the same is done on a CPU."""


def loop(models: dict[str, Any], **training: Any) -> Document:
    """An actor, a critic and a reference, with these models."""
    training = {"training": {**SPREAD, "dtype": "float32", **training}}
    rollout = {"rollout": {"max_new_tokens": 4}, "algorithm": {"name": "ppo"}}
    return {
        "coloop": 1,
        "name": "small",
        "nodes": {
            "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
            "actor": {"kind": "actor", "model": models["actor"], **rollout, **training},
            "critic": {"kind": "critic", "model": models["critic"], **training},
            "start": {"kind": "reference", "model": models["start"]},
            "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        },
        "edges": [
            "sums.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
            "actor.rollouts -> critic.rollouts",
            "actor.returns -> critic.returns",
            "critic.values -> actor.values",
            "actor.rollouts -> start.rollouts",
            "start.log_probs -> actor.reference",
        ],
        "schedule": {"steps": 1},
        "hardware": GPUS,
    }


def beginnings(document: Document, ranks: Ranks) -> InitialWeights:
    read = from_dict(document)
    assert read.spec is not None, read
    plans = {one.name: one for one in compile_plan(read.spec).weights}
    return InitialWeights(spec=read.spec, plans=plans, root=Path(), seed=7, ranks=ranks)


def net_of(home: Any) -> nn.Module:
    model: nn.Module = (getattr(home, "backend", None) or home._scorer)._tokens.model
    return model


def held_by(home: Home) -> dict[str, Tensor]:
    """All that a home has, whole: weights, adapter, tables."""
    weights = home.weights
    found = {name: one.detach().clone() for name, one in weights.named()}
    if weights.adapted is not None:
        assert not isinstance(weights.adapted, FrozenAdapter)
        found = {name: one.clone() for name, one in weights.adapted.base()}
        found |= {name: one.clone() for name, one in weights.adapted.adapter().items()}
    return found | {f"table {name}": one for name, one in net_of(home).named_buffers()}


def begun(ranks: Ranks, document: Document) -> dict[str, tuple[dict[str, Tensor], ...]]:
    """By group what its ranks hold together, and what one process reads whole."""
    here = beginnings(document, ranks)
    homes, found = here.homes("main"), {}
    for group, home in homes.items():
        whole = here.model(group, {}, "cpu").model
        waiting = here.model(group, {}, "cpu", may_wait=True)
        origin = model_of(here.spec.nodes[here._sources(group)[-1]])
        assert origin is not None
        assert (waiting.to_come is None) == (origin.type == "scratch")
        plan = here.plans[group]
        standing = here._adapter(plan, {})
        if standing is not None:
            add_adapter(whole, standing)
        expected = {
            name.replace(".base_layer.", "."): one.detach()
            for name, one in whole.named_parameters()
        }
        expected |= {f"table {name}": one for name, one in whole.named_buffers()}
        found[group] = held_by(home), expected
        assert home.weights.loaded.to_come is None
        local = [one for one in net_of(home).parameters() if isinstance(one, DTensor)]
        assert len(local) == len([*net_of(home).parameters()])
        assert all(one.requires_grad == theirs for one, theirs in _learning(home, whole))
    return found


def _learning(home: Home, whole: nn.Module) -> list[tuple[Tensor, bool]]:
    theirs = {name: one.requires_grad for name, one in whole.named_parameters()}
    return [(one, theirs[name]) for name, one in net_of(home).named_parameters()]


def all_begun(ranks: Ranks, documents: list[Document]) -> list[str]:
    """Of each loop what is not as one process reads it."""
    wrong = []
    for document in documents:
        for group, (held, expected) in begun(ranks, document).items():
            assert held.keys() == expected.keys(), (document["name"], group)
            wrong += [
                f"{document['name']}: {group}: {name}"
                for name, weight in expected.items()
                if held[name].dtype != weight.dtype or not torch.equal(held[name].cpu(), weight)
            ]
    return wrong


def dense(**fields: Any) -> PreTrainedModel:
    return tiny_model(vocab_size=len(character_tokenizer()), **fields)


def saved(folder: Path, model: PreTrainedModel, *, files: int = 1) -> dict[str, Any]:
    """The section of a model that a folder has, in about so many files."""
    save_hf(folder, model, character_tokenizer())
    if files > 1:
        size = sum(one.nbytes for one in model.parameters()) // files
        model.save_pretrained(folder, max_shard_size=size)
        (folder / "model.safetensors").unlink()
    return {"type": "pretrained", "path": str(folder)}


def plain(folder: Path) -> Document:
    """Of several files in another type, and a critic whose head is new."""
    own = saved(folder, dense(kind="llama").to(torch.bfloat16), files=3)
    return loop({"actor": own, "critic": own, "start": own})


def tied(folder: Path) -> Document:
    own = saved(folder, dense(tie_word_embeddings=True))
    return loop({"actor": {**own, "dtype": "bfloat16"}, "critic": own, "start": own})


def scored(folder: Path) -> Document:
    """A critic that begins as a classifier does."""
    own = saved(folder / "words", dense(kind="llama"))
    scores = saved(folder / "scores", with_head(dense(kind="llama"), "score", seed=3))
    return loop({"actor": own, "critic": scores, "start": {**own, "dtype": "bfloat16"}})


def copied(folder: Path) -> Document:
    """Weights that are those of another group, in the same process."""
    own = saved(folder, dense(kind="llama").to(torch.bfloat16))
    copy = {"type": "copy", "of": "actor"}
    return loop({"actor": own, "critic": {"type": "copy", "of": "start"}, "start": copy})


def copied_critic(folder: Path) -> Document:
    scores = saved(folder, with_head(dense(kind="llama"), "score", seed=3))
    found = loop({"actor": SCRATCH, "critic": scores, "start": SCRATCH})
    judge = {"kind": "critic", "model": {"type": "copy", "of": "critic"}}
    found["nodes"]["judge"] = {**judge, "training": found["nodes"]["critic"]["training"]}
    found["edges"] += ["actor.rollouts -> judge.rollouts", "actor.returns -> judge.returns"]
    return found


def scratch(folder: Path) -> Document:
    del folder
    return loop({"actor": SCRATCH, "critic": SCRATCH, "start": {"type": "copy", "of": "actor"}})


def experts(folder: Path) -> Document:
    save_hf(folder, make_model("qwen3_moe"), byte_tokenizer())
    own = {"type": "pretrained", "path": str(folder)}
    return loop({"actor": own, "critic": {"type": "copy", "of": "actor"}, "start": own})


def adapters(folder: Path) -> Document:
    """Two adapters on one base, which is spread once; and a copy of what one of them makes."""
    own = saved(folder, dense(kind="llama"))
    shared = {"type": "shared", "with": "start", "lora": {"rank": 2}}
    found = loop({"actor": shared, "critic": {**shared, "lora": {"rank": 3}}, "start": own})
    found["nodes"]["later"] = {"kind": "reference", "model": {"type": "copy", "of": "actor"}}
    return {**found, "edges": [*found["edges"], "actor.rollouts -> later.rollouts"]}


LOOPS: list[Callable[[Path], Document]] = [
    *(plain, tied, scored, copied, copied_critic, scratch, experts),
]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2])
def test_weights_over_ranks_begin_as_whole_ones(size: int, tmp_path: Path) -> None:
    documents = [{**make(tmp_path / make.__name__), "name": make.__name__} for make in LOOPS]

    assert on_ranks(size, all_begun, tmp_path, documents) == [[]] * size


@pytest.mark.slow
@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
def test_adapters_over_ranks_begin_as_those_of_one(tmp_path: Path) -> None:
    documents = []
    for dtype in ("float32", "bfloat16"):
        documents.append({**adapters(tmp_path / dtype), "name": dtype})
        for node in ("actor", "critic"):
            documents[-1]["nodes"][node]["training"]["dtype"] = dtype

    assert on_ranks(2, all_begun, tmp_path, documents) == [[]] * 2


PORTION = 2**20
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}


def alone(own: dict[str, Any], **training: Any) -> Document:
    """A loop of which one model is all."""
    found = loop({"actor": own, "critic": own, "start": own}, **training)
    del found["nodes"]["critic"], found["nodes"]["start"]
    found["nodes"]["actor"]["algorithm"] = {"name": "reinforce"}
    return {**found, "edges": found["edges"][:3]}


def at_once(ranks: Ranks, document: Document) -> dict[str, int]:
    """Bytes that a rank has at once beside its parts while weights begin."""
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # else in threads, which are not watched
    weight_buckets.CPU_BYTES = PORTION  # type: ignore[misc]
    here = beginnings(document, ranks)
    ranks.mesh("cpu")
    found, settle = {"read": 0, "pass": 0}, TokenModel.settle

    def settled(tokens: TokenModel) -> None:
        found["read"] = max(found["read"], watch.peak)
        settle(tokens)
        found["pass"] = max(found["pass"], watch.peak)
        watch.peak = watch.now

    TokenModel.settle = settled  # type: ignore[method-assign]
    with ResizedWatch() as watch:
        homes = here.homes("main")
    named = dict(net_of(homes["actor"]).named_parameters())
    parts = {name: cast(DTensor, one).to_local().nbytes for name, one in named.items()}
    sizes = {name: one.numel() * one.element_size() for name, one in named.items()}
    return {
        **found,
        "parts": sum(parts.values()),
        "all": sum(sizes.values()),
        "largest": max(sizes.values()),
        "block": sum(size for name, size in sizes.items() if ".layers.0." in name),
        "ends": sum(size for name, size in sizes.items() if ".layers." not in name),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "experts", "copied"])
def test_no_rank_has_a_whole_model_while_it_begins(kind: str, tmp_path: Path) -> None:
    if kind == "experts":
        experts = {"hidden_size": 128, "moe_intermediate_size": 128, "num_hidden_layers": 12}
        model = make_model("qwen3_moe", **experts).to(torch.bfloat16)
        save_hf(tmp_path / "model", model, byte_tokenizer())
        own = {"type": "pretrained", "path": str(tmp_path / "model")}
    else:
        own = saved(tmp_path / "model", dense(kind="llama", **SIZES).to(torch.bfloat16))
    document = alone(own)
    if kind == "copied":
        copy = {"type": "copy", "of": "actor"}
        document["nodes"]["start"] = {"kind": "reference", "model": copy}
        document["edges"] += [
            "actor.rollouts -> start.rollouts",
            "start.log_probs -> actor.reference",
        ]

    for found in on_ranks(2, at_once, tmp_path, document):
        # A weight that is converted, as its file has it, and a rank's part of one; or a portion
        # that is gathered, of which gloo's own thread may let go a little later.
        assert found["read"] <= 3 * found["largest"] + (2 * PORTION if kind == "copied" else 0)
        # Then a pass of a few tokens gathers both ends, and a block while the next one comes.
        assert found["pass"] <= 4 * found["block"] + found["ends"]
        assert found["parts"] + found["pass"] < 0.9 * found["all"]


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_are_parts_and_a_weight_at_once(tmp_path: Path) -> None:
    """FSDP2 over NCCL on one rank, whose part is all; a pass of a few tokens gathers blocks."""
    sizes = {**SIZES, "hidden_size": 1024, "intermediate_size": 4096, "head_dim": 256}
    model = dense(kind="llama", **sizes).to(torch.bfloat16)
    here = replace(beginnings(alone(saved(tmp_path / "model", model)), Ranks()), device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()

    [home] = here.homes("main").values()

    peak = torch.cuda.max_memory_allocated() - before
    every = {name: one.numel() * 4 for name, one in net_of(home).named_parameters()}
    block = sum(size for name, size in every.items() if ".layers.0." in name)
    assert peak <= sum(every.values()) + 4 * block
    for name, weight in home.weights.named():
        assert torch.equal(weight.cpu(), model.get_parameter(name).float())
    leave()


def learned(ranks: Ranks, document: Document, folder: str) -> dict[str, Any]:
    """What an update makes of weights that came one by one, and of such as were whole; and what is
    loaded of the first where a run goes on."""
    here = beginnings(document, ranks)
    section, found = training_of(here.spec, "actor"), {}
    for name in ("one by one", "whole"):
        if name == "whole":
            InitialWeights._takes_parts = lambda self, group: False  # type: ignore[method-assign]
        assert here._takes_parts("actor") == (name != "whole")
        home: Any = here.homes("main")["actor"]
        report = home.backend.update([random_load("grpo", size=5)], section, seed=0)
        weights = {name: one.clone() for name, one in home.weights.named()}
        found[name] = report.metrics["actor"]["loss"], weights
        if name == "one by one":
            home.save(Path(folder), None)
            ranks.any(False)  # all wait until it is there
            home = here.homes("main")["actor"]
            home.load(Path(folder))
            found["loaded"] = {name: one.clone() for name, one in home.weights.named()}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "training"),
    [
        (3, {}),  # parts are uneven
        (2, {"packing": True, "dtype": "bfloat16"}),
        (4, {"packing": True, "tensor_parallel": 2}),
    ],
    ids=["three", "packed", "that share layers"],
)
def test_weights_that_came_one_by_one_learn_as_whole_ones(
    size: int, training: dict[str, Any], tmp_path: Path
) -> None:
    model = dense(tie_word_embeddings=True, num_key_value_heads=2)
    document = alone(saved(tmp_path / "model", model), **training)

    for found in on_ranks(size, learned, tmp_path, document, str(tmp_path / "actor")):
        (loss, weights), (expected, theirs) = found["one by one"], found["whole"]
        assert loss == expected
        assert all(torch.equal(weights[name], one) for name, one in theirs.items())
        assert weights.keys() == theirs.keys() == found["loaded"].keys()
        assert all(torch.equal(weights[name], one) for name, one in found["loaded"].items())
