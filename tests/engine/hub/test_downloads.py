"""Models and datasets of a hub on loopback: what is read before a download, and downloads that end
early. The real `huggingface_hub` asks."""

import gzip
import hashlib
import io
import json
from pathlib import Path

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tests.hub_server import TOKEN, Hub
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.errors import HubFailed, ModelUnavailable, StorageFull
from coloop.hub import download as downloads
from coloop.hub.about import begun_name, describe_dataset, describe_model
from coloop.hub.download import Progress, download
from coloop.hub.fits import fits, gpu_named
from coloop.hub.listing import models_here
from coloop.hub.rows import preview
from coloop.models import build_model, save_hf
from coloop.models.pretrained import find_source, load_pretrained
from coloop.plan.settings.facts import config_in
from coloop.spec.hub_cache import folder_of_repo, kept_repos
from coloop.spec.model import ScratchModel

MODEL = "user/tiny"


@pytest.fixture(scope="session")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("model")
    built = build_model(
        ScratchModel(type="scratch", architecture="tiny-qwen3"), seed=0, root=folder
    )
    save_hf(folder, built.model, built.tokenizer)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def tiny(hub: Hub, model_files: dict[str, bytes]) -> Hub:
    hub.add(
        MODEL, {**model_files, "pytorch_model.bin": b"x" * 5000}, card={"license": "apache-2.0"}
    )
    return hub


def coloop(*arguments: str):
    return CliRunner().invoke(app, arguments)


def test_a_model_is_described_without_its_weights(tiny: Hub, model_files: dict[str, bytes]) -> None:
    model = describe_model(MODEL)

    sizes = {name: len(data) for name, data in model_files.items()}
    assert model.repo.licence == "apache-2.0"
    assert {file.name: file.bytes for file in model.repo.files} == sizes
    assert model.repo.bytes == sum(sizes.values())
    assert model.parameters == sum(weight.numel() for weight in _weights(model_files).values())
    assert model.refusal is None
    assert not list(kept_repos("model"))
    assert tiny.sent == len(model_files["config.json"])


def _weights(files: dict[str, bytes]) -> dict[str, torch.Tensor]:
    from safetensors.torch import load

    return load(files["model.safetensors"])


def test_a_download_is_found_by_its_id(tiny: Hub, model_files: dict[str, bytes], tmp_path) -> None:
    seen: list[Progress] = []
    folder = download(describe_model(MODEL).repo, seen.append)

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == model_files
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert (seen[-1].done, seen[-1].total) == (sum(map(len, model_files.values())),) * 2
    assert find_source(MODEL, tmp_path) == folder
    assert config_in(MODEL, tmp_path) == json.loads(model_files["config.json"])
    here = models_here()[0]
    assert (here.name, here.place, here.missing) == (MODEL, "cache", None)
    tiny.asked.clear()
    model, tokenizer, _ = load_pretrained(MODEL, tmp_path, dtype=torch.float32)
    assert tokenizer("1+1")["input_ids"]
    assert tiny.asked == []
    weights = _weights(model_files)
    assert all(torch.equal(dict(model.named_parameters())[name], weights[name]) for name in weights)
    kept = huggingface_hub.scan_cache_dir(tmp_path / "cache")
    assert [repo.repo_id for repo in kept.repos] == [MODEL]
    assert kept.warnings == []
    assert (
        Path(
            huggingface_hub.snapshot_download(
                MODEL, cache_dir=tmp_path / "cache", local_files_only=True
            )
        )
        == folder
    )


def test_a_cut_download_continues_where_it_stopped(tiny: Hub, model_files) -> None:
    whole = model_files["model.safetensors"]
    tiny.fault("cut", "model.safetensors", after=1000, times=downloads.RETRIES)
    repo = describe_model(MODEL).repo

    with pytest.raises(
        HubFailed, match=r"user/tiny: model\.safetensors: the answer of .* was cut off"
    ):
        download(repo)

    weights = next(file for file in repo.files if file.name == "model.safetensors")
    begun = folder_of_repo(MODEL) / "blobs" / begun_name(weights)
    assert begun.read_bytes() == whole[: 1000 * downloads.RETRIES]
    tiny.sent = 0
    folder = download(describe_model(MODEL).repo)
    assert (folder / "model.safetensors").read_bytes() == whole
    asked = [ranged for _, path, ranged in tiny.asked if path.startswith("/lfs/") and ranged]
    assert asked == ["bytes=1000-", "bytes=2000-", "bytes=3000-"]


def test_a_cancelled_download_keeps_what_is_there(tiny: Hub, tmp_path) -> None:
    class Cancelled(Exception):
        pass

    def report(progress: Progress) -> None:
        if progress.done > 2000:
            raise Cancelled

    with pytest.raises(Cancelled):
        download(describe_model(MODEL).repo, report)

    assert describe_model(MODEL).repo.bytes_here > 0
    with pytest.raises(ModelUnavailable, match=r"coloop models download user/tiny"):
        find_source(MODEL, tmp_path)


def test_other_contents_are_not_taken(tiny: Hub, model_files) -> None:
    repo = describe_model(MODEL).repo
    sha = hashlib.sha256(model_files["model.safetensors"]).hexdigest()
    tiny.large[sha] = bytes(len(model_files["model.safetensors"]))

    with pytest.raises(HubFailed, match="arrived with other contents than the hub promised"):
        download(repo)

    assert not (folder_of_repo(MODEL) / "blobs" / sha).exists()


def test_a_run_downloads_nothing(tiny: Hub, tmp_path) -> None:
    with pytest.raises(ModelUnavailable, match="`coloop models download user/tiny` does it"):
        load_pretrained(MODEL, tmp_path, dtype=torch.float32)

    assert tiny.asked == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("gated", r"user/tiny: config.json is gated: accept its terms at http://127"),
        ("401", r"there is no model user/tiny at http://127.* or it is private; check its name"),
        ("429", r"allows no more requests just now \(429\)"),
        ("503", r"failed \(503\); try again later"),
        ("garbage", r"answered something else"),
    ],
)
def test_each_refusal_is_one_sentence(tiny: Hub, fault: str, says: str) -> None:
    tiny.fault(fault, "config.json" if fault == "gated" else f"/api/models/{MODEL}")

    with pytest.raises(HubFailed, match=says) as failed:
        describe_model(MODEL)

    assert "\n" not in str(failed.value)


def test_other_names_and_revisions_are_said(tiny: Hub) -> None:
    with pytest.raises(HubFailed, match="there is no model user/tinny at"):
        describe_model("user/tinny")
    with pytest.raises(HubFailed, match="user/tiny has no such revision"):
        describe_model(MODEL, "v2")
    with pytest.raises(HubFailed, match=r"'\.\./tiny' is no id of the hub"):
        describe_model("../tiny")


def test_no_network_and_a_slow_hub(tiny: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = describe_model(MODEL).repo
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    tiny.fault("slow", "/lfs/", after=1)
    with pytest.raises(
        HubFailed, match="did not answer in time; try again, or set HF_HUB_DOWNLOAD"
    ):
        download(repo)

    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        HubFailed, match=r"http://127.0.0.1:9 cannot be reached .* check the network"
    ):
        describe_model(MODEL)

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubFailed, match=r"the hub is disabled \(HF_HUB_OFFLINE\)"):
        describe_model(MODEL)


def test_a_full_disk_is_found_before_the_download(tiny: Hub, monkeypatch) -> None:
    repo = describe_model(MODEL).repo
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10}))

    with pytest.raises(StorageFull, match=r"user/tiny needs .* more in .* where 10 B are free"):
        download(repo)


def test_gated_models_are_fetched_with_a_token(hub: Hub, model_files, token: str) -> None:
    hub.add(MODEL, model_files, gated=True)

    assert describe_model(MODEL).repo.is_gated
    assert download(describe_model(MODEL).repo).is_dir()
    assert token == TOKEN


def test_pickles_and_gguf_are_refused_before_a_download(hub: Hub) -> None:
    config = json.dumps({"model_type": "llama"}).encode()
    hub.add("user/old", {"config.json": config, "pytorch_model.bin": b"x"})
    hub.add("user/few-bits", {"model.Q4.gguf": b"x"})

    assert "no weights as safetensors" in (describe_model("user/old").refusal or "")
    assert "GGUF files only" in (describe_model("user/few-bits").refusal or "")
    assert "pickles" in coloop("models", "download", "user/old").output


def test_fits_follows_the_memory_of_a_machine() -> None:
    config = {
        **{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "head_dim": 128},
        **{"intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32},
        **{"num_key_value_heads": 8, "tie_word_embeddings": False},
        "max_position_embeddings": 40960,
    }  # 8.19 B parameters: 16.4 GB in bfloat16, with AdamW in float32 over 130 GB

    one = {fit.way: fit.fits for fit in fits(config, {"preset": "1xH100"})}
    eight = {fit.way: fit.fits for fit in fits(config, {"preset": "8xH100"})}

    assert one == {"full": False, "lora": True}
    assert eight == {"full": True, "lora": True}


@pytest.mark.parametrize(
    ("driver", "gib", "known"),
    [
        ("NVIDIA H100 80GB HBM3", 80, "H100-80GB"),
        ("NVIDIA A100-SXM4-40GB", 40, "A100-40GB"),
        ("NVIDIA GeForce RTX 4090", 24, "RTX-4090"),
        ("NVIDIA H200", 140, "H200-141GB"),
    ],
)
def test_the_gpu_of_a_driver_is_known(driver: str, gib: int, known: str) -> None:
    assert gpu_named(driver, gib * 2**30) == known


ROWS = [{"prompt": f"{number}+1=", "answer": str(number + 1)} for number in range(5000)]


def _parquet(rows: list[dict[str, str]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def _lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("data/train-00000-of-00001.parquet", _parquet(ROWS)),
        ("train.jsonl", _lines(ROWS)),
        ("train.jsonl.gz", gzip.compress(_lines(ROWS))),
    ],
)
def test_rows_are_seen_before_a_download(hub: Hub, name: str, data: bytes) -> None:
    hub.add("user/sums", {name: data, "test.jsonl": _lines(ROWS[:2])}, kind="datasets")
    dataset = describe_dataset("user/sums")

    first = preview(dataset, dataset.part("train"), 3)

    assert list(first.rows) == ROWS[:3]
    assert first.rows_in_file in (None, 5000)
    assert first.bytes_read == hub.sent
    assert not list(kept_repos("dataset"))
    assert [(part.split, len(part.files)) for part in dataset.parts] == [("train", 1), ("test", 1)]


def test_few_bytes_of_a_large_parquet_file_are_read(hub: Hub) -> None:
    import random

    words = random.Random(0)
    rows = [{"text": "".join(words.choices("abcdefgh", k=400))} for _ in range(8000)]
    data = _parquet(rows)
    hub.add("user/long", {"train.parquet": data}, kind="datasets")
    dataset = describe_dataset("user/long")

    first = preview(dataset, dataset.part(), 2)

    assert list(first.rows) == rows[:2]
    assert first.bytes_read < 0.7 * len(data)


def test_splits_follow_the_card(hub: Hub) -> None:
    files = {"a/x.jsonl": _lines(ROWS[:2]), "b/y.jsonl": _lines(ROWS[2:4])}
    card = {
        "configs": [
            {"config_name": "easy", "data_files": [{"split": "train", "path": "a/*"}]},
            {"config_name": "hard", "data_files": [{"split": "train", "path": "b/*"}]},
        ]
    }
    hub.add("user/two", files, kind="datasets", card=card)
    dataset = describe_dataset("user/two")

    assert list(preview(dataset, dataset.part(None, "hard"), 5).rows) == ROWS[2:4]
    with pytest.raises(HubFailed, match="has no split hard/test; it has easy/train, hard/train"):
        dataset.part("test", "hard")


def test_commands(tiny: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny.add("user/sums", {"train.jsonl": _lines(ROWS)}, kind="datasets", card={"license": "mit"})

    shown = json.loads(coloop("models", "show", MODEL, "--json").output)
    assert shown["license"] == "apache-2.0"
    assert [way["fits"] for way in shown["fits"]["here"]["ways"]] == [True, True]
    assert "GRPO, 8 completions" in coloop("models", "show", MODEL).output
    got = coloop("models", "download", MODEL)
    assert "model: {type: pretrained, path: user/tiny}" in got.output
    listed = json.loads(coloop("models", "list", "--json").output)
    assert [model["name"] for model in listed if model["place"] == "cache"] == [MODEL]
    rows = coloop("datasets", "show", "user/sums", "--rows", "2")
    assert "prompt: 1+1=" in rows.output
    assert "were read" in rows.output
    assert "source: {type: file, path: data/user-sums-train.jsonl}" in (
        coloop("datasets", "download", "user/sums").output
    )
    assert (tmp_path / "data/user-sums-train.jsonl").read_bytes() == _lines(ROWS)
    wrong = coloop("models", "show", "user/none")
    assert wrong.exit_code == 1
    assert "there is no model user/none" in wrong.output
