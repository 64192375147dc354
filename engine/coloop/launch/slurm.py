"""An sbatch script: Ray on the allocated machines, the driver on the first of them.

    sbatch ──> batch script on the first node ──srun──> `ray start` on each node
                  │
                  └── coloop run ──> Ray           stops with a checkpoint before the walltime ends,
                                                   is queued again, and resumes

A job that Slurm queues again, after a lost node as well, has the same job id, by which the script
finds its run folder and resumes.
"""

import re
import shlex
from collections.abc import Mapping

from coloop.launch.job import DRIVER_CORES, Job
from coloop.workers.ray.ray_settings import PATIENCE

BEFORE_END_SECONDS = 300
"""How long before the walltime ends a run is asked to stop: time for the stage and a checkpoint."""
LOOP_ENDS = "COLOOP_LOOP_ENDS"

BODY = r"""
set -euo pipefail
@SECRETS@
cd @ROOT@
@SETUP@

run_id="@NAME@-$SLURM_JOB_ID"
runs_dir="$(realpath -m @RUNS@)"
job="$runs_dir/.jobs/$run_id"
mkdir -p "$job"
chmod 700 "$job"
cat > "$job/loop.yaml" <<'@ENDS@'
@LOOP@@ENDS@

# Machines, and the address of the first as the last one knows it.
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
on() { srun --overlap --nodes=1 --ntasks=1 --nodelist="$1" "${@:2}"; }
head_ip="$(on "${nodes[-1]}" getent ahostsv4 "${nodes[0]}" | awk 'NR == 1 { print $1 }')"
address="$head_ip:$((20000 + SLURM_JOB_ID % 20000))"

# Others on the network reach Ray's ports; only who knows the token may use them.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$job/ray-token"
(umask 077; python -c 'import secrets; print(secrets.token_hex(32))' > "$RAY_AUTH_TOKEN_PATH")

@PATIENCE@
rays=()
trap 'kill "${rays[@]}" 2>/dev/null || true' EXIT
start_ray() { # node, then where
  # Ray gives up a node that takes over 30 s to start, as with libraries on a slow file system.
  on "$1" @RESOURCES@ bash -c 'for _ in 1 2 3; do ray start "$@" --block; sleep 5; done' ray \
    "${@:2}" @RAY@ --disable-usage-stats >> "$job/ray-$1.log" 2>&1 &
  rays+=("$!")
}
start_ray "${nodes[0]}" --head --node-ip-address="$head_ip" --port="${address##*:}" \
  --include-dashboard=false
until ray health-check --address "$address" > /dev/null 2>&1; do
  if ! kill -0 "${rays[0]}" 2>/dev/null; then
    echo "Ray did not start on ${nodes[0]}: see $job/ray-${nodes[0]}.log" >&2
    exit 1
  fi
  sleep 2
done
for node in "${nodes[@]:1}"; do start_ray "$node" --address="$address"; done

if [[ -f "$runs_dir/$run_id/spec.yaml" ]]; then
  what=(--resume "$run_id")
else
  what=("$job/loop.yaml" --root "$PWD" --run-id "$run_id")
fi
coloop run "${what[@]}" --runs-dir "$runs_dir" --address "$address" --wait-nodes "${#nodes[@]}" &
driver=$!

# Before the walltime ends the run stops with a checkpoint, and the job is queued again.
is_ending=""
trap 'is_ending=yes; kill -TERM "$driver" 2>/dev/null || true' USR1
trap 'kill -TERM "$driver" 2>/dev/null || true' TERM
status=0
wait "$driver" || status=$?
while kill -0 "$driver" 2>/dev/null; do # a signal ends `wait`, not the driver
  status=0
  wait "$driver" || status=$?
done
if [[ -n "$is_ending" && "$status" -eq 130 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
  status=0
fi
exit "$status"
"""


def sbatch_script(job: Job) -> str:
    options = job.options
    cores, gpus = job.cores_per_node, job.gpus_per_node
    head = [
        "#!/bin/bash",
        f"# Written by `coloop launch --slurm`. Submit it with: sbatch {job.name}.sbatch",
        *(f"# {line}" for line in job.placement),
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --nodes={job.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --cpus-per-task={cores}",
    ]
    if gpus:
        kind = f"{options.accelerator}:" if options.accelerator else ""
        head.append(f"#SBATCH --gpus-per-node={kind}{gpus}")
    head += [
        f"#SBATCH --time={options.time}",
        *([f"#SBATCH --partition={options.partition}"] if options.partition else []),
        *([f"#SBATCH --account={options.account}"] if options.account else []),
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        f"#SBATCH --signal=B:USR1@{BEFORE_END_SECONDS}",
        "#SBATCH --output=%x-%j.log",
    ]
    resources = f"--cpus-per-task={cores}" + (f" --gpus-per-node={gpus}" if gpus else "")
    secrets = [f': "${{{name}:?set it before you call sbatch}}"' for name in job.secrets]
    values = {
        "SECRETS": "\n".join(secrets),
        "ROOT": shlex.quote(str(job.root)),
        "SETUP": "\n".join(options.setup),
        "NAME": job.name,
        "RUNS": shlex.quote(options.runs_dir),
        "ENDS": LOOP_ENDS,
        "RESOURCES": resources,
        "PATIENCE": "export " + " ".join(f"{name}={value}" for name, value in PATIENCE.items()),
        "RAY": f"--num-cpus={cores - DRIVER_CORES} --num-gpus={gpus}",
    }
    return "\n".join(head) + "\n" + filled(BODY, values, job.loop)


def filled(body: str, values: Mapping[str, str], loop: str) -> str:
    """A script with its `@NAME@`s replaced and the loop as it is; no two lines are left empty."""
    text = re.sub(r"@([A-Z]+)@", lambda found: values.get(found[1], found[0]), body)
    return re.sub(r"\n{3,}", "\n\n", text).replace("@LOOP@", loop, 1)
