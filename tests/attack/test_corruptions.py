"""A run folder that is damaged in every way that comes to mind: `runs check` names the file, and a
resume takes an older whole checkpoint aloud, refuses, or never reads what is damaged. None goes on
to other weights.

The folder is that of a real run, stopped after its fifth step: checkpoints of steps 4 and 5.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.attack.small_run import request_of
from tests.engine.run_requests import request

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.checkup import check_run
from coloop.runtime.checkpoints.manifest import read_manifest, write_manifest
from coloop.runtime.run_files.event_file import EVENT_FILE, read_events
from coloop.runtime.run_files.events import RunStateName, StopRequest
from coloop.runtime.run_files.run_lock import LOCK_FILE
from coloop.runtime.start import run
from coloop.spec.io import parse

pytestmark = pytest.mark.attack

STEPS, STOPPED_AT = 6, 5
LOOP = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 64}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  start: {kind: reference, model: {type: snapshot, of: actor}}
  digit:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> start.rollouts
  - start.log_probs -> actor.reference
  - digit.scores -> actor.rewards
schedule: {steps: 6}
hardware: {preset: cpu}
run: {checkpoint_every: 1, keep: 2}
"""

Damage = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One way to damage a run folder."""

    name: str
    harm: Damage
    then: str
    """older: it goes on from step 4 and says so. refused: it does not go on. same: a resume does
    not read it, or mends it. told: it goes on, and says that something is not as it was."""
    named: str
    """What `runs check` names; empty: nothing is damaged."""


def newest(folder: Path) -> Path:
    return folder / "checkpoints" / f"step-{STOPPED_AT}"


def older(folder: Path) -> Path:
    return folder / "checkpoints" / f"step-{STOPPED_AT - 1}"


def flipped(name: str, at: float) -> Damage:
    """One bit of a file is another; `at` is the place in it, from 0 to 1."""

    def harm(folder: Path) -> None:
        path = folder / name
        data = bytearray(path.read_bytes())
        data[int(at * (len(data) - 1))] ^= 4
        path.write_bytes(data)

    return harm


def cut(name: str, keep: float) -> Damage:
    def harm(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])

    return harm


def grown(name: str, more: bytes) -> Damage:
    def harm(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes() + more)

    return harm


def gone(name: str) -> Damage:
    def harm(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return harm


def written(name: str, content: bytes) -> Damage:
    def harm(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(content)

    return harm


def zeros(name: str) -> Damage:
    """As long as it was, and nothing in it."""

    def harm(folder: Path) -> None:
        path = folder / name
        path.write_bytes(bytes(path.stat().st_size))

    return harm


def swapped(one: str, other: str) -> Damage:
    def harm(folder: Path) -> None:
        first, second = folder / one, folder / other
        first.rename(folder / "aside")
        second.rename(first)
        (folder / "aside").rename(second)

    return harm


def copied(source: str, target: str) -> Damage:
    def harm(folder: Path) -> None:
        (folder / target).unlink(missing_ok=True)
        shutil.copy(folder / source, folder / target)

    return harm


def in_manifest(change: Callable[[dict[str, Any]], None], *, signed: bool) -> Damage:
    """The newest manifest says something else; signed: with the hash that belongs to it."""

    def harm(folder: Path) -> None:
        place = newest(folder)
        if signed:
            manifest = read_manifest(place)
            change(manifest)
            write_manifest(place, manifest)
            return
        manifest = json.loads((place / "manifest.json").read_text())
        change(manifest)
        (place / "manifest.json").write_text(json.dumps(manifest))

    return harm


def line(number: int, change: Callable[[bytes], bytes]) -> Damage:
    """A line of the events is another; numbers from 1, or from the end."""

    def harm(folder: Path) -> None:
        path = folder / EVENT_FILE
        lines = path.read_bytes().splitlines(keepends=True)
        place = number - 1 if number > 0 else number
        lines[place] = change(lines[place])
        path.write_bytes(b"".join(lines))

    return harm


def without(name: str) -> Callable[[bytes], bytes]:
    """An event without one of its fields."""

    def change(text: bytes) -> bytes:
        event = json.loads(text)
        del event[name]
        return json.dumps(event).encode() + b"\n"

    return change


def all_of(*harms: Damage) -> Damage:
    def harm(folder: Path) -> None:
        for one in harms:
            one(folder)

    return harm


def shared_and_flipped(folder: Path) -> None:
    """What is frozen is one file in both, and that one is damaged."""
    name = "start/model.safetensors"
    (older(folder) / name).unlink()
    os.link(newest(folder) / name, older(folder) / name)
    flipped(f"{LAST}/{name}", 0.7)(folder)


def another_rate(folder: Path) -> None:
    (folder / "spec.yaml").write_text(LOOP.replace("1.0e-3", "1.0e-2"), encoding="utf-8")


def older_manifest(folder: Path) -> None:
    (older(folder) / "manifest.json").write_text('{"version": 3, "st')


LAST = f"checkpoints/step-{STOPPED_AT}"
BEFORE = f"checkpoints/step-{STOPPED_AT - 1}"
WEIGHTS, STATE = f"{LAST}/actor/model.safetensors", f"{LAST}/actor/trainer.pt"
MANIFEST = f"{LAST}/manifest.json"
POINTS_NOWHERE = "checkpoints that point nowhere"
DEEP = b"[" * 100_000 + b"\n"

CASES = [
    Case("a bit of the weights", flipped(WEIGHTS, 0.9), "older", "model.safetensors"),
    Case("a bit of the weights' header", flipped(WEIGHTS, 0.0001), "older", "model.safetensors"),
    Case("the last bit of the weights", flipped(WEIGHTS, 1.0), "older", "model.safetensors"),
    Case("half of the weights", cut(WEIGHTS, 0.5), "older", "model.safetensors"),
    Case("the weights, empty", cut(WEIGHTS, 0.0), "older", "model.safetensors"),
    Case("weights with more behind", grown(WEIGHTS, b"\0"), "older", "model.safetensors"),
    Case("weights of zeros", zeros(WEIGHTS), "older", "model.safetensors"),
    Case("no weights", gone(WEIGHTS), "older", "model.safetensors"),
    Case(
        "weights of a step before",
        copied(f"{BEFORE}/actor/model.safetensors", WEIGHTS),
        "older",
        "model.safetensors",
    ),
    Case(
        "weights of another node",
        copied(f"{LAST}/start/model.safetensors", WEIGHTS),
        "older",
        "model.safetensors",
    ),
    Case(
        "a bit of frozen weights",
        flipped(f"{LAST}/start/model.safetensors", 0.7),
        "older",
        "start/model.safetensors",
    ),
    Case("a bit of frozen weights that both share", shared_and_flipped, "refused", "step-4"),
    Case(
        "half of the frozen weights",
        cut(f"{LAST}/start/model.safetensors", 0.5),
        "older",
        "start/model.safetensors",
    ),
    Case("a bit of the optimizer", flipped(STATE, 0.5), "older", "trainer.pt"),
    Case("a bit at the optimizer's end", flipped(STATE, 0.999), "older", "trainer.pt"),
    Case("half of the optimizer", cut(STATE, 0.5), "older", "trainer.pt"),
    Case("no optimizer", gone(STATE), "older", "trainer.pt"),
    Case(
        "an optimizer of a step before",
        copied(f"{BEFORE}/actor/trainer.pt", STATE),
        "older",
        "trainer.pt",
    ),
    Case(
        "a bit of the model's config",
        flipped(f"{LAST}/actor/config.json", 0.5),
        "older",
        "config.json",
    ),
    Case("no config", gone(f"{LAST}/actor/config.json"), "older", "config.json"),
    Case(
        "a bit of the tokenizer",
        flipped(f"{LAST}/actor/tokenizer.json", 0.5),
        "older",
        "tokenizer.json",
    ),
    Case(
        "an index that leads elsewhere",
        written(
            f"{LAST}/actor/model.safetensors.index.json",
            b'{"weight_map": {"a": "../../../x.safetensors"}}',
        ),
        "older",
        "index.json",
    ),
    Case("no folder of a node", gone(f"{LAST}/actor"), "older", "actor"),
    Case("nodes swapped", swapped(f"{LAST}/actor", f"{LAST}/start"), "older", "step-5"),
    Case("an empty manifest", written(MANIFEST, b""), "older", "manifest.json"),
    Case("half a manifest", cut(MANIFEST, 0.5), "older", "manifest.json"),
    Case("a manifest of zeros", zeros(MANIFEST), "older", "manifest.json"),
    Case("a manifest that is a list", written(MANIFEST, b"[]"), "older", "manifest.json"),
    Case("a manifest too deep", written(MANIFEST, DEEP), "older", "manifest.json"),
    Case("a manifest in no text", written(MANIFEST, b"\xff\xfe\x00"), "older", "manifest.json"),
    Case("a bit of the manifest", flipped(MANIFEST, 0.3), "older", "manifest.json"),
    Case("no manifest", gone(MANIFEST), "older", "step-5"),
    Case(
        "a pipe for a manifest",
        all_of(gone(MANIFEST), lambda folder: os.mkfifo(folder / MANIFEST)),
        "older",
        "step-5",
    ),
    Case(
        "the manifest of a step before",
        copied(f"{BEFORE}/manifest.json", MANIFEST),
        "older",
        "step-5",
    ),
    Case(
        "another figure in the manifest",
        in_manifest(lambda m: m["roles"]["problems"].update(drawn=2), signed=False),
        "older",
        "manifest.json",
    ),
    Case(
        "a manifest without its hash",
        in_manifest(lambda m: m.pop("sha256"), signed=False),
        "older",
        "manifest.json",
    ),
    Case(
        "a manifest without files",
        in_manifest(lambda m: m.pop("files"), signed=True),
        "older",
        "step-5",
    ),
    Case(
        "a manifest that forgets a file's hash",
        in_manifest(lambda m: m["hashes"].pop("actor/model.safetensors"), signed=True),
        "older",
        "SHA-256",
    ),
    Case(
        "a manifest of a version to come",
        in_manifest(lambda m: m.update(version=9), signed=False),
        "older",
        "version 9",
    ),
    Case("checkpoints swapped", swapped(LAST, BEFORE), "refused", "step-5"),
    Case("no newest checkpoint", gone(LAST), "older", "step-5"),
    Case(
        "a newest checkpoint that is a file",
        all_of(gone(LAST), written(LAST, b"")),
        "older",
        "step-5",
    ),
    Case("half an older manifest", older_manifest, "same", "step-4"),
    Case("older weights cut", cut(f"{BEFORE}/actor/model.safetensors", 0.5), "same", "step-4"),
    Case("no older checkpoint", gone(BEFORE), "same", ""),
    Case("both damaged", all_of(flipped(WEIGHTS, 0.5), older_manifest), "refused", "step-5"),
    Case("no checkpoints", gone("checkpoints"), "refused", "step-5"),
    Case(
        POINTS_NOWHERE,
        all_of(
            gone("checkpoints"),
            lambda folder: (folder / "checkpoints").symlink_to("/nowhere/at/all"),
        ),
        "refused",
        "checkpoints",
    ),
    Case("a line of events cut off", line(9, lambda text: text[:20] + b"\n"), "same", "line 9"),
    Case(
        "a line of events of zeros",
        line(9, lambda text: bytes(len(text) - 1) + b"\n"),
        "same",
        "line 9",
    ),
    Case(
        "a bit of a line's shape",
        line(9, lambda text: b"{" + bytes([text[1] ^ 4]) + text[2:]),
        "same",
        "line 9",
    ),
    Case("no text in a line", line(9, lambda _: b"\xff\xfe\xff\n"), "same", "line 9"),
    Case("a line too deep", line(9, lambda _: DEEP), "same", "line 9"),
    Case("a line without seq", line(9, without("seq")), "same", "line 9"),
    Case("a line without attempt", line(9, without("attempt")), "same", "line 9"),
    Case("a line without type", line(9, without("type")), "same", "line 9"),
    Case("a line that is a number", line(9, lambda _: b"7\n"), "same", "line 9"),
    Case(
        "a seq that is no number",
        line(9, lambda text: text.replace(b'"seq":9', b'"seq":"x"')),
        "same",
        "line 9",
    ),
    Case(
        "a seq beyond all",
        line(9, lambda text: text.replace(b'"seq":9', b'"seq":' + b"9" * 25)),
        "same",
        "line 9",
    ),
    Case("a line twice", line(9, lambda text: text + text), "same", "seq 9 after 9"),
    Case("a line lost", line(9, lambda _: b""), "same", "seq 10 after 8"),
    Case("the first line bad", line(1, lambda _: b"?\n"), "same", "line 1"),
    Case("the last line bad", line(-1, lambda _: b"?\n"), "same", "not an event"),
    Case("a torn end", grown(EVENT_FILE, b'{"seq": 999, "mess'), "same", "incomplete"),
    Case("zeros at the end", grown(EVENT_FILE, bytes(4096)), "same", "incomplete"),
    Case(
        "a torn end in zeros",
        grown(EVENT_FILE, b'{"seq": 9' + bytes(99)),
        "same",
        "incomplete",
    ),
    Case("no events", gone(EVENT_FILE), "same", "events.jsonl"),
    Case("events of zeros", zeros(EVENT_FILE), "same", "incomplete"),
    Case("half the loop", cut("spec.yaml", 0.3), "unreadable", "spec.yaml"),
    Case("an empty loop", written("spec.yaml", b""), "unreadable", "spec.yaml"),
    Case("no loop", gone("spec.yaml"), "unreadable", "spec.yaml"),
    Case(
        "another rate in the loop",
        another_rate,
        "told",
        "spec.yaml",
    ),
    Case("half a plan", cut("plan.json", 0.5), "same", "plan.json"),
    Case("a plan of zeros", zeros("plan.json"), "same", "plan.json"),
    Case("no plan", gone("plan.json"), "same", "plan.json"),
    Case("half a machine", cut("machine.json", 0.5), "same", "machine.json"),
    Case("no origin", gone("origin.json"), "same", "origin.json"),
    Case("half an origin", cut("origin.json", 0.5), "same", "origin.json"),
    Case("half the gauges", cut("gauges.json", 0.5), "same", "gauges.json"),
    Case("half the kept gauges", cut("gauges.jsonl", 0.5), "same", "gauges.jsonl"),
    Case("kept gauges of zeros", zeros("gauges.jsonl"), "same", "gauges.jsonl"),
    Case("no kept gauges", gone("gauges.jsonl"), "same", ""),
    Case("half a report", cut("report.json", 0.5), "same", "report.json"),
    Case("half a sample", cut("samples/step-1.jsonl", 0.5), "same", "samples/step-1.jsonl"),
    Case("no sample", gone("samples/step-1.jsonl"), "same", "samples/step-1.jsonl"),
    Case("a request of zeros", written("control.jsonl", bytes(64)), "same", "control.jsonl"),
]

QUICK = (
    "a bit of the weights",
    "an index that leads elsewhere",
    "half a manifest",
    "another figure in the manifest",
    "no manifest",
    "no newest checkpoint",
    "both damaged",
    POINTS_NOWHERE,
    "a line without seq",
    "zeros at the end",
    "another rate in the loop",
)
"""Of these the resume is tried each time; of all others with the slow tests."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was stopped after its fifth step."""
    place = tmp_path_factory.mktemp("stopped")

    def stop(what: str, text: str) -> None:
        event = json.loads(text)
        if what == "event" and event["type"] == "checkpoint" and event["step"] == STOPPED_AT:
            request(place / "run", StopRequest())

    ended = run(request_of(place, LOOP, goes_on=False, sinks=[stop]))
    assert ended.state is RunStateName.STOPPED
    assert [one.step for one in list_checkpoints(place / "run" / "checkpoints")] == [4, 5]
    assert not [*check_run(place / "run")]
    assert weights_in(newest(place / "run")) != weights_in(older(place / "run"))
    return place / "run"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the run that nobody stops."""
    place = tmp_path_factory.mktemp("undisturbed")
    assert run(request_of(place, LOOP, goes_on=False)).state is RunStateName.FINISHED
    return weights_of(place / "run")


@pytest.fixture
def damaged(tmp_path: Path, stopped: Path) -> Path:
    """A copy of the stopped run, in which every file stands for itself."""
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def weights_of(folder: Path) -> str:
    last = list_checkpoints(folder / "checkpoints")[-1]
    assert last.step == STEPS
    return weights_in(last.path)


def weights_in(checkpoint: Path) -> str:
    return sha256((checkpoint / "actor" / "model.safetensors").read_bytes()).hexdigest()


def named_in(folder: Path) -> str:
    """All that `runs check` finds damaged."""
    found = [f"{one.path}: {one.message}" for one in check_run(folder) if one.level == "damaged"]
    return "\n".join(found)


def content(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", ["events.jsonl", "spec.yaml", "gauges.json", "gauges.jsonl"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_hangs_nobody(name: str, damaged: Path) -> None:
    (damaged / name).unlink()
    os.mkfifo(damaged / name)

    assert f"{name}: it is neither a file nor a folder" in named_in(damaged)


@pytest.mark.parametrize(
    "name",
    [
        "events.jsonl",
        "engine.log",
        "gauges.json.new",
        "gauges.jsonl",
        "samples",
        "samples/step-6.jsonl",
    ],
)
def test_nothing_is_written_through_a_link(name: str, damaged: Path, tmp_path: Path) -> None:
    link, outside = damaged / name, tmp_path / "outside"
    if link.exists():
        link.rename(outside)
    else:
        outside.write_text("somebody's\n")
    link.symlink_to(outside)
    before = content(outside) if outside.is_dir() else outside.read_bytes()
    text = (damaged / "spec.yaml").read_text(encoding="utf-8")

    with pytest.raises(CheckpointError, match="is a link"):
        run(request_of(damaged.parent, text, goes_on=True))

    assert (content(outside) if outside.is_dir() else outside.read_bytes()) == before
    assert f"{name}: it is a link to {outside}" in named_in(damaged)


def by_name(case: Case) -> str:
    return case.name.replace(" ", "-")


def test_there_are_enough_of_them() -> None:
    assert len(CASES) == len({case.name for case in CASES}) >= 50
    assert {case.name for case in CASES} >= set(QUICK)


@pytest.mark.sample(43)
@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_every_damage_is_named_and_nothing_is_written(case: Case, damaged: Path) -> None:
    case.harm(damaged)
    before = content(damaged)

    found = named_in(damaged)

    assert case.named in found
    assert bool(found) is bool(case.named)
    assert content(damaged) == before


def resumes(case: Case, folder: Path, undisturbed: str) -> None:
    """A resume of a damaged run ends as the case says."""
    case.harm(folder)
    kept = (folder / EVENT_FILE).read_bytes() if (folder / EVENT_FILE).exists() else b""
    if case.then == "unreadable":
        text = folder / "spec.yaml"
        assert not text.exists() or parse(text.read_text()).spec is None
        return
    text = (folder / "spec.yaml").read_text(encoding="utf-8")
    if case.name == POINTS_NOWHERE:
        with pytest.raises(CheckpointError, match="which does not exist"):
            run(request_of(folder.parent, text, goes_on=True))
        return
    ended = run(request_of(folder.parent, text, goes_on=True))
    alerts = [event for event in read_events(folder / EVENT_FILE) if event["type"] == "alert"]
    codes = [event["code"] for event in alerts]
    if case.then == "refused":
        assert ended.state is RunStateName.FAILED
        assert ended.error is not None
        assert ended.error.code == "checkpoint.unusable"
        return
    assert ended.state is RunStateName.FINISHED, ended.error
    if case.then == "told":
        assert "run.other_loop" in codes
        return
    assert weights_of(folder) == undisturbed
    if case.then == "older":
        told = [event for event in alerts if event["code"] == "checkpoint.damaged"]
        assert any("resumes from the checkpoint of step 4" in event["message"] for event in told)
        assert any(f"step {STOPPED_AT}" in e["message"] or "step-5" in e["message"] for e in told)
    middle = kept[: kept.rfind(b"\n") + 1]
    assert (folder / EVENT_FILE).read_bytes().startswith(middle)
    seqs = [event["seq"] for event in read_events(folder / EVENT_FILE)]
    assert seqs == sorted(seqs)
    if "line" in case.name and "not an event" in named_in(folder):
        assert "events.damaged" in codes


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", [one for one in CASES if one.name in QUICK], ids=by_name)
def test_none_goes_on_to_other_weights(case: Case, damaged: Path, undisturbed: str) -> None:
    resumes(case, damaged, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("case", [one for one in CASES if one.name not in QUICK], ids=by_name)
def test_none_of_the_rest_goes_on_to_other_weights(
    case: Case, damaged: Path, undisturbed: str
) -> None:
    resumes(case, damaged, undisturbed)


def test_a_checkpoint_that_is_asked_for_and_damaged_is_refused(damaged: Path) -> None:
    flipped(WEIGHTS, 0.5)(damaged)

    ended = run(request_of(damaged.parent, LOOP, goes_on=True, checkpoint=STOPPED_AT))

    assert ended.state is RunStateName.FAILED
    assert ended.error is not None
    assert "the checkpoint of step 5 is damaged" in ended.error.message
    assert "model.safetensors" in ended.error.message


def test_a_run_goes_back_to_the_checkpoint_that_is_asked_for(
    damaged: Path, undisturbed: str
) -> None:
    ended = run(request_of(damaged.parent, LOOP, goes_on=True, checkpoint=STOPPED_AT - 1))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert weights_of(damaged) == undisturbed
    assert (damaged / "checkpoints" / f"step-{STOPPED_AT}.set-aside").is_dir()


def test_damaged_frozen_weights_are_not_taken_over_into_the_next_checkpoint(
    damaged: Path, undisturbed: str
) -> None:
    """The newest is damaged in what the next one would link to."""
    flipped(f"{LAST}/start/model.safetensors", 0.7)(damaged)
    good = sha256((older(damaged) / "start" / "model.safetensors").read_bytes()).hexdigest()

    run(request_of(damaged.parent, LOOP, goes_on=True))

    last = list_checkpoints(damaged / "checkpoints")[-1].path / "start" / "model.safetensors"
    assert sha256(last.read_bytes()).hexdigest() == good
    assert weights_of(damaged) == undisturbed


def test_checkpoints_behind_a_link_are_used_as_they_are(damaged: Path, undisturbed: str) -> None:
    far = damaged.parent / "far"
    (damaged / "checkpoints").rename(far)
    (damaged / "checkpoints").symlink_to(far, target_is_directory=True)
    assert not named_in(damaged)
    flipped(WEIGHTS, 0.5)(damaged)

    ended = run(request_of(damaged.parent, LOOP, goes_on=True))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert (damaged / "checkpoints").is_symlink()
    assert weights_of(damaged) == undisturbed
    assert not (far / LOCK_FILE).read_bytes()
