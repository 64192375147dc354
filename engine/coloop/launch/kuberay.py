"""KubeRay manifests: the loop in a ConfigMap, and a RayJob that makes its own cluster, or a
RayCluster that stays, for `coloop run --address http://...:8265`.

The fields are those of KubeRay's `ray.io/v1`. A job that is tried again (`backoffLimit`, in a new
cluster) finds its run folder on the volume and resumes.
"""

import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import yaml

from coloop.launch.dumping import Dumper
from coloop.launch.job import DRIVER_CORES, Job

RUNS, LOOP = "/runs", "/coloop"
RETRIES: Final = 3
KEPT_SECONDS: Final = 600
"""How long pods of an ended job are kept, to read their logs."""
SHARED_MEMORY: Final = "16Gi"
"""Of a pod: Ray's object store and NCCL use /dev/shm."""


def ray_job(job: Job) -> str:
    """A ConfigMap with the loop and a RayJob."""
    spec: dict[str, Any] = {
        "entrypoint": _entrypoint(job),
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "backoffLimit": RETRIES,
    }
    if job.limit is not None:
        spec["activeDeadlineSeconds"] = int(job.limit.total_seconds())
    spec["rayClusterSpec"] = _cluster(job)
    return _stream(job, _object(job, "RayJob", spec))


def ray_cluster(job: Job) -> str:
    """A ConfigMap with the loop and a RayCluster that stays until it is deleted."""
    return _stream(job, _object(job, "RayCluster", _cluster(job)))


def _entrypoint(job: Job) -> str:
    there = f"{RUNS}/{job.name}"
    new = f"{LOOP}/loop.yaml --root {RUNS} --run-id {job.name}"
    script = (
        f"if [ -f {there}/spec.yaml ]; then set -- --resume {job.name}; else set -- {new}; fi; "
        f'exec coloop run "$@" --runs-dir {RUNS} --address auto --wait-nodes {job.nodes + 1}'
    )
    return f"bash -c {shlex.quote(script)}"


def _cluster(job: Job) -> dict[str, Any]:
    head = _pod(job, "ray-head", cores=DRIVER_CORES, gpus=0)
    worker = _pod(
        job, "ray-worker", cores=job.cores_per_node - DRIVER_CORES, gpus=job.gpus_per_node
    )
    spec: dict[str, Any] = {
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0", "num-gpus": "0"},
            "template": {"spec": head},
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": job.nodes,
                "minReplicas": job.nodes,
                "maxReplicas": job.nodes,
                "rayStartParams": {},
                "template": {"spec": worker},
            }
        ],
    }
    if (ray := _ray_version()) is not None:
        spec = {"rayVersion": ray, **spec}
    return spec


def _pod(job: Job, name: str, *, cores: int, gpus: int) -> dict[str, Any]:
    wanted: dict[str, Any] = {"cpu": str(cores)}
    if gpus:
        wanted["nvidia.com/gpu"] = gpus
    container: dict[str, Any] = {
        "name": name,
        "image": job.options.image,
        "resources": {"requests": wanted, "limits": wanted},
        "volumeMounts": [
            {"name": "runs", "mountPath": RUNS},
            {"name": "loop", "mountPath": LOOP, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    if job.secrets:
        container["env"] = [
            {
                "name": variable,
                "valueFrom": {"secretKeyRef": {"name": f"{job.name}-secrets", "key": variable}},
            }
            for variable in job.secrets
        ]
    claim = job.options.volume or f"{job.name}-runs"
    memory = {"medium": "Memory", "sizeLimit": SHARED_MEMORY}
    return {
        "containers": [container],
        "volumes": [
            {"name": "runs", "persistentVolumeClaim": {"claimName": claim}},
            {"name": "loop", "configMap": {"name": f"{job.name}-loop"}},
            {"name": "shm", "emptyDir": memory},
        ],
    }


def _object(job: Job, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"name": job.name},
        "spec": spec,
    }


def _stream(job: Job, last: dict[str, Any]) -> str:
    loop = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{job.name}-loop"},
        "data": {"loop.yaml": job.loop},
    }
    claim = job.options.volume or f"{job.name}-runs"
    notes = [
        "# Written by `coloop launch --kuberay`. Submit it with: kubectl apply -f FILE",
        *(f"# {line}" for line in job.placement),
        f"# Run folders and files of the loop lie on the volume claim {claim} (ReadWriteMany).",
    ]
    if job.secrets:
        keys = " ".join(f"--from-literal={name}=..." for name in job.secrets)
        made = f"kubectl create secret generic {job.name}-secrets {keys}"
        notes.append(f"# Make the secret first: {made}")
    documents: str = yaml.dump_all(
        [loop, last], Dumper=Dumper, sort_keys=False, width=100, explicit_start=True
    )
    return "\n".join(notes) + "\n" + documents


def _ray_version() -> str | None:
    try:
        return version("ray")
    except PackageNotFoundError:
        return None
