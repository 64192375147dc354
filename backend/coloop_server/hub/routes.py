"""Models and datasets over HTTP: what is here, what the hub has, downloads that were asked for."""

import json
import subprocess
import sys
from typing import Annotated

from fastapi import Path

from coloop.errors import HubFailed
from coloop.hub import about, fits
from coloop.hub.listing import datasets_here, models_here
from coloop.spec.hub_cache import endpoint
from coloop_server.dependencies import DownloadsOf, SettingsOf
from coloop_server.errors import router_of
from coloop_server.files.routes import UPLOADS, folder_of
from coloop_server.hub.downloads import options_of
from coloop_server.hub.schemas import (
    DataPart,
    DatasetHere,
    Download,
    Fit,
    Fits,
    HubDataset,
    HubHere,
    HubModel,
    ModelHere,
    NamedModel,
    NamedRows,
    NewDownload,
)
from coloop_server.processes import child_environment

router = router_of("hub", "/hub")

Key = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
ROWS_SECONDS = 60.0


@router.get("", operation_id="getHub")
def get_hub(downloads: DownloadsOf) -> HubHere:
    """Models and datasets on this machine, and downloads since the server started. Nothing is asked
    of the hub."""
    listed = downloads.list()
    for download in listed:
        download.paths = [f"{UPLOADS}/{path.rpartition('/')[2]}" for path in download.paths]
    return HubHere(
        models=[ModelHere.model_validate(model) for model in models_here()],
        datasets=[DatasetHere.model_validate(dataset) for dataset in datasets_here()],
        downloads=listed,
        endpoint=endpoint(),
    )


@router.post("/models", operation_id="describeHubModel")
def describe_model(body: NamedModel) -> HubModel:
    """A model of the hub: size, licence, parameters, and whether it can be trained on this machine
    and on the hardware of a loop. Only its config is read."""
    model = about.describe_model(body.id, body.revision)
    machines = [(fits.hardware_here(), True)]
    if body.hardware is not None and body.hardware != machines[0][0]:
        machines.append((body.hardware, False))
    return HubModel(
        id=model.repo.id,
        license=model.repo.licence,
        is_gated=model.repo.is_gated,
        files=len(model.repo.files),
        bytes=model.repo.bytes,
        bytes_here=model.repo.bytes_here,
        model_type=model.model_type,
        parameters=model.parameters,
        active=model.active,
        refusal=model.refusal,
        fits=[
            Fits(
                hardware=fits.hardware_words(hardware),
                is_here=is_here,
                ways=[Fit.model_validate(fit) for fit in fits.fits(model.config, hardware)],
            )
            for hardware, is_here in machines
            if model.config is not None
        ],
    )


@router.post("/datasets", operation_id="previewHubDataset")
def preview_dataset(body: NamedRows) -> HubDataset:
    """A dataset of the hub: its parts, and the first rows of one, by ranged requests to one file.
    They are read in a process of its own, which may load pyarrow."""
    command = [sys.executable, "-m", "coloop", "datasets", "show", "--json"]
    command += ["--rows", str(body.rows), *options_of(body.split, body.config)]
    if body.revision is not None:
        command += ["--revision", body.revision]
    try:
        ended = subprocess.run(
            [*command, "--", body.id],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ROWS_SECONDS,
            env=child_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HubFailed(
            f"{body.id}: {endpoint()} did not send its rows in {ROWS_SECONDS:.0f} s; try again"
        ) from None
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        message = lines[-1].removeprefix("error: ") if lines else f"code {ended.returncode}"
        raise HubFailed(message)
    found = json.loads(ended.stdout)
    return HubDataset(
        id=found["id"],
        license=found["license"],
        parts=[
            DataPart(
                config=part["config"],
                split=part["split"],
                files=len(part["files"]),
                bytes=sum(file["bytes"] for file in part["files"]),
            )
            for part in found["parts"]
        ],
        **found["preview"],
    )


@router.post("/downloads", operation_id="startDownload", status_code=202)
def start_download(body: NewDownload, downloads: DownloadsOf, settings: SettingsOf) -> Download:
    """Download a model into the cache of the hub, or the files of one split of a dataset to where
    datasets read them. One that was cancelled or cut off continues."""
    return downloads.start(body, folder_of(settings))


@router.delete("/downloads/{key}", operation_id="cancelDownload", status_code=204)
def cancel_download(key: Key, downloads: DownloadsOf) -> None:
    """Cancel a download; what has arrived stays for the next."""
    downloads.cancel(key)
