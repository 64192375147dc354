"""Job files for clusters: an sbatch script, KubeRay manifests, a SkyPilot task. They are written
from a loop and its plan; nothing here talks to a cluster."""

from coloop.launch.job import Job, Options, Target, job_of
from coloop.launch.kuberay import ray_cluster, ray_job
from coloop.launch.sky import sky_task
from coloop.launch.slurm import sbatch_script

WRITERS = {
    "slurm": sbatch_script,
    "kuberay": ray_job,
    "kuberay-cluster": ray_cluster,
    "sky": sky_task,
}
"""By target, its text for a job."""

__all__ = ["WRITERS", "Job", "Options", "Target", "job_of"]
