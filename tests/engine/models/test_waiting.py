"""Models that are built without memory for their weights: read one by one, they are what the folder
loaded whole is, bit for bit."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.models.architectures import make_model
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import ModelUnavailable
from coloop.models import LoadedModel, build_model, save_hf
from coloop.models.folder import save_adapter
from coloop.models.heads import add_scores, with_head
from coloop.models.tokenizer import byte_tokenizer
from coloop.models.waiting import WeightsToCome
from coloop.spec.model import Lora, PretrainedModel

KINDS = (
    *("qwen3", "llama", "gpt2", "gemma3_text", "phi3"),
    # files have experts apart; the types of some tables are the family's own
    *("mixtral", "qwen3_moe", "deepseek_v3", "ernie4_5_moe", "gpt_oss", "minimax"),
    *("gptj", "bloom", "mamba2"),  # tables computed as the weights are drawn, or none at all
)


def built(folder: Path, *, may_wait: bool, **section: Any) -> LoadedModel:
    asked = PretrainedModel.model_validate({"type": "pretrained", "path": str(folder), **section})
    return build_model(asked, seed=0, root=folder, may_wait=may_wait)


def came(model: PreTrainedModel, to_come: WeightsToCome) -> dict[str, Tensor]:
    """Each weight as it comes to lie in the model."""
    places = to_come.places_in(model)
    found = {name: one for name, one in model.named_parameters() if not one.is_meta}
    for name, weight in to_come.weights():
        if name in places:
            for dtype in places[name].types:
                weight = weight.to(dtype)
            found[places[name].name] = weight
    return found


def check_same(folder: Path, **section: Any) -> tuple[LoadedModel, LoadedModel]:
    """The folder loaded whole, and waiting; both alike in all that they are."""
    whole, waiting = (built(folder, may_wait=one, **section) for one in (False, True))
    ours, theirs = waiting.model, whole.model
    assert type(ours) is type(theirs)
    assert ours.training == theirs.training
    assert ours.config.to_dict() == theirs.config.to_dict()
    assert ours.config.name_or_path == theirs.config.name_or_path
    if theirs.can_generate():
        assert ours.generation_config.to_dict() == theirs.generation_config.to_dict()
    assert waiting.to_come is not None
    weights, expected = came(ours, waiting.to_come), dict(theirs.named_parameters())
    assert weights.keys() == expected.keys()
    for name, weight in expected.items():
        assert weights[name].dtype == weight.dtype == ours.get_parameter(name).dtype
        assert torch.equal(weights[name], weight), name
        assert ours.get_parameter(name).requires_grad == weight.requires_grad
    assert {id(one) for one in ours.parameters()} == {
        id(ours.get_parameter(name)) for name in expected
    }
    tables = dict(ours.named_buffers())
    assert tables.keys() == dict(theirs.named_buffers()).keys()
    for name, table in theirs.named_buffers():
        assert tables[name].dtype == table.dtype
        assert torch.equal(tables[name], table), name
    return whole, waiting


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_read_one_by_one_a_model_is_what_it_is_read_whole(
    kind: str, dtype: str, tmp_path: Path
) -> None:
    save_hf(tmp_path / "model", make_model(kind), byte_tokenizer())

    whole, waiting = check_same(tmp_path / "model", dtype=dtype)

    assert all(one.is_meta for one in waiting.model.parameters())
    assert conversions(waiting.model) == conversions(whole.model)


def conversions(model: Any) -> list[tuple[type, Any]]:
    """How its files' names and forms became its own, for who writes them again."""
    return [(type(one), one.source_patterns) for one in model._weight_conversions]


def test_of_several_files_each_weight_is_read_where_the_index_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model = make_model("mixtral").to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="20KB")
    byte_tokenizer().save_pretrained(folder)

    check_same(folder, dtype="float32")

    assert len(list(folder.glob("*.safetensors"))) > 3


def test_score_heads_are_there_at_once(tmp_path: Path) -> None:
    classifier = with_head(make_model("qwen3"), "score", seed=3, classes=2)
    several = make_model("qwen3")
    add_scores(several, {node: torch.randn(1, 64) for node in ("critic", "judge")})
    for name, model in (("classifier", classifier), ("several", several)):
        save_hf(tmp_path / name, model, byte_tokenizer())

        _, waiting = check_same(tmp_path / name)

        there = {n for n, one in waiting.model.named_parameters() if not one.is_meta}
        assert there == {n for n, _ in model.named_parameters() if n.startswith("score.")}
        assert there


def test_an_adapter_is_merged_as_its_base_is_read(tmp_path: Path) -> None:
    base = make_model("qwen3")
    layer = "model.layers.1.self_attn.q_proj"
    rows, width = base.get_parameter(f"{layer}.weight").shape
    weights = {
        f"{layer}.lora_A.default.weight": torch.randn(2, width),
        f"{layer}.lora_B.default.weight": torch.randn(rows, 2),
    }
    save_adapter(
        tmp_path / "adapter",
        weights,
        Lora(rank=2, alpha=3.0),
        outline=base,
        tokenizer=byte_tokenizer(),
        base=base,
    )

    whole, _ = check_same(tmp_path / "adapter", dtype="bfloat16")

    merged = whole.model.get_parameter(f"{layer}.weight")
    assert not torch.equal(merged, base.get_parameter(f"{layer}.weight").to(torch.bfloat16))


def changed(folder: Path, **changes: Tensor | None) -> None:
    """The folder's weights with others in place of some, or without them."""
    weights: dict[str, Tensor | None] = {**load_file(folder / "model.safetensors"), **changes}
    kept = {name: one for name, one in weights.items() if one is not None}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("files", [1, 4])
def test_of_the_hub_files_are_read_where_its_library_keeps_them(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    kept = tmp_path / "models--someone--small"
    folder = kept / "snapshots" / commit
    model = make_model("llama").to(torch.bfloat16)
    size = sum(one.nbytes for one in model.parameters()) // files
    model.save_pretrained(folder, max_shard_size=2 * size if files == 1 else size)
    byte_tokenizer().save_pretrained(folder)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    check_same(Path("someone/small"), dtype="float32")

    assert (len(list(folder.glob("*.safetensors"))) == 1) == (files == 1)


WORDS, HEAD = "model.embed_tokens.weight", "lm_head.weight"
FIRST = "model.layers.0.mlp.up_proj.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_hf(tmp_path / "model", make_model("qwen3", tie_word_embeddings=True), byte_tokenizer())
    return tmp_path / "model"


@pytest.mark.slow
def test_tied_weights_are_one(folder: Path) -> None:
    _, waiting = check_same(folder)
    model = waiting.model
    assert model.get_parameter(HEAD) is model.get_parameter(WORDS)

    words = load_file(folder / "model.safetensors")[WORDS]
    changed(folder, **{HEAD: words})  # some programs write both
    check_same(folder)

    changed(folder, **{WORDS: None})
    check_same(folder)

    changed(folder, **{WORDS: words, HEAD: words + 1})  # loaded whole: its config is wrong
    assert built(folder, may_wait=True).to_come is None


@pytest.mark.parametrize("may_wait", [False, True])
def test_a_weight_that_is_missing_is_never_random(folder: Path, may_wait: bool) -> None:
    changed(folder, **{FIRST: None})

    with pytest.raises(ModelUnavailable, match=rf"weight is missing from its files, {FIRST}; copy"):
        built(folder, may_wait=may_wait)


@pytest.mark.parametrize("may_wait", [False, True])
def test_a_weight_of_another_shape_is_refused(folder: Path, may_wait: bool) -> None:
    changed(folder, **{FIRST: torch.zeros(3, 5)})

    with pytest.raises(ModelUnavailable, match=r"cannot be loaded: .*ignore_mismatched_sizes"):
        built(folder, may_wait=may_wait)


def test_a_file_that_is_missing_is_named_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_model("llama").save_pretrained(folder, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(folder)
    gone = sorted(folder.glob("*.safetensors"))[1]
    gone.unlink()

    told = []
    for may_wait in (False, True):
        with pytest.raises(ModelUnavailable) as error:
            built(folder, may_wait=may_wait)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert gone.name in told[0]


def set_fields(folder: Path, **fields: Any) -> None:
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **fields}))


def test_weights_that_are_not_read_by_their_names_do_not_wait(folder: Path) -> None:
    set_fields(folder, transformers_weights="model.safetensors")

    assert built(folder, may_wait=True).to_come is None


def test_of_two_sets_of_weights_the_library_chooses(folder: Path) -> None:
    names = dict.fromkeys(load_file(folder / "model.safetensors"), "other.safetensors")
    index = {"metadata": {}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "other.safetensors").write_bytes((folder / "model.safetensors").read_bytes())

    assert built(folder, may_wait=True).to_come is None


def test_code_that_a_folder_brings_is_left_where_the_family_is_known(folder: Path) -> None:
    set_fields(folder, auto_map={"AutoModelForCausalLM": "own.Own"})

    check_same(folder)


def test_what_is_cast_twice_is_rounded_twice(folder: Path) -> None:
    waiting = built(folder, may_wait=True)
    assert waiting.to_come is not None
    for dtype in (torch.bfloat16, torch.float32):
        waiting.model.to(dtype)
        waiting.to_come.note_types()

    found = came(waiting.model, waiting.to_come)

    for name, weight in built(folder, may_wait=False).model.named_parameters():
        assert torch.equal(found[name], weight.to(torch.bfloat16).float())


def test_a_weight_that_nobody_gives_is_named(folder: Path) -> None:
    waiting = built(folder, may_wait=True)
    assert waiting.to_come is not None
    layer: Any = waiting.model.get_submodule("model.layers.0.mlp.up_proj")
    layer.weight = torch.nn.Parameter(torch.empty(3, 3, device="meta"))

    with pytest.raises(ValueError, match=f"1 weights have no source, such as {FIRST}"):
        waiting.to_come.places_in(waiting.model)
