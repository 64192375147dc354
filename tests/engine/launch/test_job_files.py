"""Job files for Slurm, KubeRay and SkyPilot: what they ask for, in the forms that each accepts."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from coloop.errors import ExportRefused
from coloop.launch import WRITERS, Options, Target, job_of
from coloop.launch.job import duration, name_of
from coloop.launch.slurm import filled
from coloop.plan.compile import compile_plan
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse

FIELDS = Path(__file__).with_name("kuberay_fields.json")
"""Types, required fields and nothing else of the fields that we use, from the custom resource
definitions of KubeRay (ray.io/v1, August 2026); others are refused, as by the API server."""
LOOP = """
coloop: 1
name: grpo-of-a-32b-model
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 32}
  actor:
    kind: actor
    model: {type: pretrained, path: Qwen/Qwen2.5-32B-Instruct}
    rollout: {engine: vllm, tensor_parallel: 4, completions_per_prompt: 8, max_new_tokens: 512}
    algorithm: {name: grpo}
  judge:
    kind: reward
    source: {type: remote, url: "https://judge.example/score", secret: judge}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> judge.rollouts
  - judge.scores -> actor.rewards
schedule: {steps: 10}
hardware: {preset: 16xH100}
run: {report_to: [wandb]}
"""
TIME = Options(time="1-00:00:00")
IMAGE = Options(image="example/coloop:1", time="2:00:00")


def spec_of(text: str = LOOP) -> LoopSpec:
    spec = parse(text).spec
    assert spec is not None
    return spec


def written(target: Target, options: Options, text: str = LOOP) -> str:
    spec = spec_of(text)
    job = job_of(spec, text, compile_plan(spec), Path("/home/me/loops"), target, options)
    return WRITERS[target](job)


def test_a_script_for_slurm_asks_for_the_machines_of_the_plan() -> None:
    options = Options(time="1-00:00:00", partition="gpu", account="lab", secrets=("HF_TOKEN",))
    script = written("slurm", options)

    asked = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert asked == [
        "#SBATCH --job-name=grpo-of-a-32b-model",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --cpus-per-task=10",  # 16 processes of a thread over 2 machines, and 2 cores
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --time=1-00:00:00",
        "#SBATCH --partition=gpu",
        "#SBATCH --account=lab",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=B:USR1@300",
        "#SBATCH --output=%x-%j.log",
    ]
    assert "# pool main: 16 processes, a GPU each; actor (fsdp2), 4 x vllm of actor, each" in script
    for name in ("COLOOP_SECRET_JUDGE", "WANDB_API_KEY", "HF_TOKEN"):
        assert f': "${{{name}:?set it before you call sbatch}}"' in script
    assert LOOP in script, "the loop as it is"


def test_a_script_for_slurm_is_bash_without_findings(tmp_path: Path) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(written("slurm", TIME), encoding="utf-8")

    subprocess.run(["bash", "-n", str(path)], check=True)
    checker = shutil.which("shellcheck") or shutil.which(
        "shellcheck", path=str(Path(sys.executable).parent)
    )
    if checker is not None:
        subprocess.run([checker, str(path)], check=True)


def test_secrets_are_names_and_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "do-not-write-me")

    for target in WRITERS:
        options = Options(time="90", image="example/coloop:1")
        assert "do-not-write-me" not in written(target, options)  # type: ignore[arg-type]
    with pytest.raises(ExportRefused, match="never its value") as refused:
        written("slurm", Options(time="90", secrets=("HF_TOKEN=hf_abc",)))
    assert "hf_abc" not in str(refused.value)


@pytest.mark.parametrize("target", ["kuberay", "kuberay-cluster"])
def test_manifests_have_fields_that_kuberay_knows(target: Target) -> None:
    config, ray = yaml.safe_load_all(written(target, IMAGE))

    assert config["data"]["loop.yaml"] == LOOP
    jsonschema.validate(ray, json.loads(FIELDS.read_text(encoding="utf-8"))[ray["kind"]])
    cluster = ray["spec"].get("rayClusterSpec", ray["spec"])
    [workers] = cluster["workerGroupSpecs"]
    [container] = workers["template"]["spec"]["containers"]
    assert workers["replicas"] == 2
    assert container["resources"]["limits"] == {"cpu": "8", "nvidia.com/gpu": 8}
    assert container["env"][0] == {
        "name": "COLOOP_SECRET_JUDGE",
        "valueFrom": {
            "secretKeyRef": {"name": "grpo-of-a-32b-model-secrets", "key": "COLOOP_SECRET_JUDGE"}
        },
    }


def test_a_ray_job_resumes_and_ends_at_its_time() -> None:
    _, ray = yaml.safe_load_all(written("kuberay", IMAGE))

    assert ray["spec"]["activeDeadlineSeconds"] == 2 * 60 * 60
    assert ray["spec"]["backoffLimit"] == 3
    assert "--resume grpo-of-a-32b-model" in ray["spec"]["entrypoint"]
    assert "--wait-nodes 3" in ray["spec"]["entrypoint"]  # two of workers and the head


def sky_config(options: Options) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(written("sky", options))
    return config


def test_a_task_for_skypilot_names_its_gpus_and_its_bucket(tmp_path: Path) -> None:
    config = sky_config(Options(volume="s3://runs"))

    assert config["resources"] == {"cpus": "10+", "accelerators": "H100:8"}
    assert config["num_nodes"] == 2
    assert config["file_mounts"] == {"/runs": {"source": "s3://runs", "mode": "MOUNT"}}
    assert config["secrets"] == {"COLOOP_SECRET_JUDGE": None, "WANDB_API_KEY": None}
    script = tmp_path / "run.sh"
    script.write_text(config["run"], encoding="utf-8")
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert LOOP in config["run"]


def test_skypilot_reads_the_task() -> None:
    sky = pytest.importorskip("sky", reason="SkyPilot is not installed")
    config = sky_config(Options()) | {"workdir": None}
    secrets = config.pop("secrets")

    task = sky.Task.from_yaml_config(
        {**config, "secrets": dict.fromkeys(secrets, "given-on-the-command-line")}
    )

    [wanted] = task.resources
    assert task.num_nodes == 2
    assert wanted.accelerators == {"H100": 8}
    assert set(task.secrets) == set(secrets)


@pytest.mark.parametrize(
    ("target", "options", "problem"),
    [
        ("slurm", Options(), r"--time is missing: .* --time 1-00:00:00"),
        ("slurm", Options(time="soon"), r"--time 'soon' is no walltime; write it as Slurm does"),
        ("slurm", Options(time="0"), r"--time '0' is no time at all"),
        (
            "slurm",
            Options(time="90", nodes=1),
            r"the plan needs 16 GPUs \(main 16\), and 1 x 8 = 8 are asked for; raise --nodes",
        ),
        (
            "slurm",
            Options(time="90", nodes=8, gpus_per_node=2),
            r"an engine of the plan needs 4 GPUs of one machine .* --gpus-per-node is 2",
        ),
        ("kuberay", Options(), r"--image is missing"),
        ("slurm", Options(time="90", secrets=("a b",)), r"name of an environment variable"),
    ],
)
def test_what_a_cluster_could_not_run_is_refused(
    target: Target, options: Options, problem: str
) -> None:
    with pytest.raises(ExportRefused, match=problem):
        written(target, options)


def test_a_gpu_that_skypilot_does_not_know_is_named_by_the_user() -> None:
    loop = LOOP.replace("16xH100", "16xH20")

    with pytest.raises(ExportRefused, match=r"known as H20-96GB; name it .* --accelerator"):
        written("sky", Options(), loop)
    named = yaml.safe_load(written("sky", Options(accelerator="H20"), loop))
    assert named["resources"]["accelerators"] == "H20:8"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90 * 60),
        ("1:30", 90),
        ("12:00:00", 12 * 3600),
        ("1-12", 36 * 3600),
        ("2-0:30", 2 * 86400 + 30 * 60),
        ("1-00:00:10", 86410),
    ],
)
def test_walltimes_are_read_as_slurm_reads_them(text: str, seconds: int) -> None:
    assert duration(text).total_seconds() == seconds


def test_names_are_those_that_kubernetes_takes() -> None:
    assert name_of("Größe & Co.") == "gr-e-co"
    assert name_of("___") == "coloop"
    assert len(name_of("a" * 90)) == 40


def test_a_loop_in_a_script_is_left_as_it_is() -> None:
    loop = "a: |\n  one @NAME@\n\n\n  two\n"

    assert filled("@NAME@\n@SETUP@\n\n\n@LOOP@end", {"NAME": "n", "SETUP": ""}, loop) == (
        f"n\n\n{loop}end"
    )
