"""Job files over HTTP: a file with its name, or one sentence why there is none."""

from typing import Any

import pytest
from starlette.testclient import TestClient


def asked(client: TestClient, loop: str, **options: Any) -> Any:
    return client.post("/api/jobs", json={"yaml": loop, **options})


@pytest.mark.parametrize(
    ("options", "name", "begins"),
    [
        ({"target": "slurm", "time": "2:00:00"}, ".sbatch", "#!/bin/bash\n"),
        ({"target": "kuberay", "image": "example/coloop:1"}, ".yaml", "# Written by `coloop"),
        ({"target": "sky", "nodes": 2}, ".yaml", "# Written by `coloop launch --sky`"),
    ],
)
def test_a_loop_has_a_job_file_for_each_cluster(
    options: dict[str, Any], name: str, begins: str, client: TestClient, loop: str
) -> None:
    answer = asked(client, loop, **options)

    assert answer.status_code == 200, answer.text
    assert answer.json()["name"].endswith(name)
    assert answer.json()["text"].startswith(begins)


def test_what_is_missing_is_said(client: TestClient, loop: str) -> None:
    answer = asked(client, loop, target="slurm")

    assert answer.status_code == 422
    assert answer.json()["code"] == "export.refused"
    assert "--time is missing" in answer.json()["message"]


def test_options_cannot_add_lines_to_a_script(client: TestClient, loop: str) -> None:
    answer = asked(client, loop, target="slurm", time="90", partition="gpu\nrm -rf /")

    assert answer.status_code == 422
