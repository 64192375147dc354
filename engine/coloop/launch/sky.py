"""A SkyPilot task: Ray on its machines, on a port of its own beside SkyPilot's, and the driver on
the first of them. With `--volume` the run folders lie in a bucket, where a managed job (`sky jobs
launch`) that lost its machines finds them and resumes."""

import shlex
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import yaml

from coloop.errors import ExportRefused
from coloop.launch.dumping import Dumper
from coloop.launch.job import DRIVER_CORES, Job
from coloop.launch.slurm import LOOP_ENDS, filled

ACCELERATORS: Final[Mapping[str, str]] = {
    "H100-80GB": "H100",
    "H200-141GB": "H200",
    "B200-180GB": "B200",
    "A100-80GB": "A100-80GB",
    "A100-40GB": "A100",
    "L40S-48GB": "L40S",
    "L4-24GB": "L4",
    "A10G-24GB": "A10G",
    "A10-24GB": "A10",
    "T4-16GB": "T4",
    "RTX-A6000": "RTXA6000",
    "RTX-4090": "RTX4090",
    "RTX-3090": "RTX3090",
    "MI300X-192GB": "MI300X",
}
"""By our name of a GPU, SkyPilot's (its catalogs, `sky show-gpus`)."""
RUNS: Final = "/runs"

RUN = r"""
set -euo pipefail
mkdir -p @RUNS@/.jobs/@NAME@
cat > ~/loop.yaml <<'@ENDS@'
@LOOP@@ENDS@

head_ip="$(head -n 1 <<< "$SKYPILOT_NODE_IPS")"
address="$head_ip:6399"
if [[ "$SKYPILOT_NODE_RANK" -ne 0 ]]; then
  until ray health-check --address "$address" > /dev/null 2>&1; do sleep 5; done
  ray start --address="$address" @RAY@ --disable-usage-stats
  while ray health-check --address "$address" > /dev/null 2>&1; do sleep 10; done
  exit 0
fi
# Not `ray stop` at the end, which would end SkyPilot's own Ray as well.
ray start --head --node-ip-address="$head_ip" --port=6399 --include-dashboard=false \
  @RAY@ --disable-usage-stats --block &
ray=$!
if [[ -f @RUNS@/@NAME@/spec.yaml ]]; then
  what=(--resume @NAME@)
else
  what=("$HOME/loop.yaml" --root "$PWD" --run-id @NAME@)
fi
status=0
coloop run "${what[@]}" --runs-dir @RUNS@ --address "$address" \
  --wait-nodes "$SKYPILOT_NUM_NODES" || status=$?
kill "$ray" && wait "$ray" || true
exit "$status"
"""


def sky_task(job: Job) -> str:
    """The YAML of a task."""
    values = {
        "RUNS": RUNS if job.options.volume else "~/runs",
        "NAME": job.name,
        "ENDS": LOOP_ENDS,
        "RAY": f"--num-cpus={job.cores_per_node - DRIVER_CORES} --num-gpus={job.gpus_per_node}",
    }
    task: dict[str, Any] = {
        "name": job.name,
        "workdir": str(job.root),
        "num_nodes": job.nodes,
        "resources": _resources(job),
        "setup": "\n".join(job.options.setup or [_install(job)]),
        "run": filled(RUN.lstrip("\n"), values, job.loop),
    }
    if job.options.volume:
        task["file_mounts"] = {RUNS: {"source": job.options.volume, "mode": "MOUNT"}}
    if job.secrets:
        task["secrets"] = dict.fromkeys(job.secrets)
    notes = [
        "# Written by `coloop launch --sky`. Submit it with: sky jobs launch FILE"
        + "".join(f" --secret {name}" for name in job.secrets),
        *(f"# {line}" for line in job.placement),
    ]
    dumped: str = yaml.dump(task, Dumper=Dumper, sort_keys=False, width=100)
    return "\n".join(notes) + "\n" + dumped


def _resources(job: Job) -> dict[str, Any]:
    wanted: dict[str, Any] = {"cpus": f"{job.cores_per_node}+"}
    if job.gpus_per_node:
        name = job.options.accelerator or ACCELERATORS.get(job.gpu or "")
        if name is None:
            raise ExportRefused(
                f"SkyPilot has no GPU that is known as {job.gpu}; name it in its words with "
                "--accelerator (`sky show-gpus` lists them)"
            )
        wanted["accelerators"] = f"{name}:{job.gpus_per_node}"
    if job.options.image:
        wanted["image_id"] = f"docker:{job.options.image}"
    return wanted


def _install(job: Job) -> str:
    extra = "engine,vllm" if job.gpus_per_node else "engine"
    try:
        release = f"=={version('coloop')}"
    except PackageNotFoundError:
        release = ""
    return f"pip install {shlex.quote(f'coloop[{extra}]{release}')}"
