"""Each tracker with its real library: what was sent is read back with the library's own reader.

`make test-extras` runs them in an environment of their own; elsewhere they are skipped.
"""

import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tracking.recording import a_run, about, event, reading
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.spec import presets
from coloop.spec.placement import TrackerName
from coloop.tracking import Feed, new_tracker
from coloop.tracking.tracker import RunAbout

SCORES = [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)]
Send = Callable[[TrackerName], RunAbout]


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Sends a run of three steps, then resumes it for a fourth one."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "a-run"
    folder.mkdir(parents=True)

    def send(name: TrackerName) -> RunAbout:
        pytest.importorskip(name, reason=f"{name} is not installed; `make test-extras`")
        for messages in (
            a_run(folder),
            [
                ("event", event("run.state", 3, state="running")),
                ("event", reading(4, 0.5)),
                ("event", event("run.state", 4, state="finished")),
            ],
        ):
            second = int(time.time())
            feed = Feed(new_tracker(name), about(folder), with_checkpoints=True)
            for kind, message in messages:
                feed.event(message) if kind == "event" else feed.step_gauges(message)
            feed.close()
            while int(time.time()) == second:  # W&B names folders of offline runs by the second
                time.sleep(0.02)
        return about(folder)

    return send


def test_tensorboard(send: Send) -> None:
    sent = send("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(sent.folder / "tensorboard"))
    found.Reload()

    scores = [(point.step, point.value) for point in found.Scalars("probe/pass@8")]
    assert scores == [(step, pytest.approx(value)) for step, value in [*SCORES, (4, 0.5)]]
    assert found.Scalars("run/step_seconds")[0].value == 1.5
    texts = {tag.removesuffix("/text_summary"): tag for tag in found.Tags()["tensors"]}
    assert {"loop", "samples", "alerts/warning", "checkpoints"} <= texts.keys()
    alert = found.Tensors(texts["alerts/warning"])[0].tensor_proto.string_val[0]
    assert b"the KL is high" in alert
    [loop] = found.Tensors(texts["loop"])  # once, though the run was resumed
    assert b"two-halves" in loop.tensor_proto.string_val[0]


def test_mlflow(send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    send("mlflow")
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("coloop")
    [run] = client.search_runs([experiment.experiment_id])

    history = client.get_metric_history(run.info.run_id, "probe/pass.at.8")
    scores = sorted((point.step, point.value) for point in history)
    assert scores == [(step, pytest.approx(value)) for step, value in [*SCORES, (4, 0.5)]]
    assert run.info.status == "FINISHED"
    assert run.data.params["name"] == "two-halves"
    assert run.data.tags["alert.learning.kl"].startswith("units: the KL is high")
    artifacts = {one.path for one in client.list_artifacts(run.info.run_id)}
    assert {"loop.yaml", "loop.svg", "loop.json", "samples", "checkpoints"} <= artifacts
    assert run.data.tags["best_checkpoint"] == "checkpoints/step-3"


def test_trackio(send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trackio", reason="trackio is not installed; `make test-extras`")
    from trackio import sqlite_storage as storage
    from trackio import utils

    for module in (utils, storage):
        monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
    sent = send("trackio")

    logs = storage.SQLiteStorage.get_logs("coloop", sent.run)

    scores = [(log["step"], log["probe/pass@8"]) for log in logs if "probe/pass@8" in log]
    assert scores == [(step, pytest.approx(value)) for step, value in [*SCORES, (4, 0.5)]]
    assert any("samples" in log for log in logs)
    alerts = storage.SQLiteStorage.get_alerts("coloop", sent.run)
    assert "the KL is high" in alerts[0]["text"]
    config = storage.SQLiteStorage.get_run_config("coloop", sent.run)
    assert "two-halves" in config["loop"]


def test_wandb(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    sent = send("wandb")

    files = sorted((sent.folder / "wandb").glob("offline-run-*/run-*.wandb"))
    records = [record for file in files for record in wandb_records(file)]

    history = [items_of(record.history.item) for record in records if record.HasField("history")]
    scores = [(row["step"], row["probe/pass@8"]) for row in history if "probe/pass@8" in row]
    assert scores == [(step, pytest.approx(value)) for step, value in [*SCORES, (4, 0.5)]]
    assert {record.run.run_id for record in records if record.HasField("run")} == {"a-run"}
    alerts = [record.alert for record in records if record.HasField("alert")]
    assert [alert.title for alert in alerts] == ["learning.kl"]
    names = {record.artifact.name for record in records if record.HasField("artifact")}
    requests = [record.request.log_artifact for record in records if record.HasField("request")]
    names |= {request.artifact.name for request in requests}
    keys = {key for row in history for key in row}
    assert any(key.startswith("samples") for key in keys), keys
    assert any("checkpoint" in name for name in names), names


def items_of(items: Any) -> Mapping[str, Any]:
    return {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in items}


def wandb_records(path: Path) -> Iterator[Any]:
    """The records of a `.wandb` file: LevelDB's log format after a header of 7 bytes, each record a
    protobuf message."""
    from wandb.proto import wandb_internal_pb2

    data, at, parts = path.read_bytes(), 7, b""
    block = 32 * 1024
    while at + 7 <= len(data):
        room = block - at % block
        if room < 7:
            at += room
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def test_wandb_without_a_key_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed; `make test-extras`")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    wandb.teardown()  # its settings are read once in a process
    feed = Feed(new_tracker("wandb"), about(tmp_path), with_checkpoints=False)

    with pytest.raises(Exception, match="wandb login"):
        feed.event(event("run.state", state="starting"))


def test_the_command_sends_an_old_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed; `make test-extras`")
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "spec.yaml").write_text(presets.load_loop_text("two-halves"))
    messages = [message for kind, message in a_run(folder) if kind == "event"]
    lines = [json.dumps({**one, "seq": n}) for n, one in enumerate(messages, 1)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")

    sent = CliRunner().invoke(
        app, ["log", "old", "--runs-dir", str(tmp_path), "--to", "tensorboard"]
    )
    unknown = CliRunner().invoke(app, ["log", str(folder), "--to", "paper"])

    assert sent.exit_code == 0, sent.output
    assert f"tensorboard: {len(messages)} events of old" in sent.output
    assert list((folder / "tensorboard").glob("events.*"))
    assert unknown.exit_code == 1
    assert "trackers are tensorboard, wandb, mlflow, trackio" in unknown.output
