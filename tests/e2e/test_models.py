"""Models as a user meets them: what the hub has is looked at, downloaded, cancelled, continued and
used, on a hub on loopback."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.conftest import Server, serving
from tests.e2e.test_compose import begin, node
from tests.hub_server import Hub, hub_server

pytestmark = pytest.mark.e2e

CONFIG = {
    **{"model_type": "qwen3", "vocab_size": 512, "hidden_size": 64, "head_dim": 16},
    **{"intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "tie_word_embeddings": True, "max_position_embeddings": 512},
}
A_PROCESS = 120_000
"""Milliseconds for a process that starts and asks the hub, on a busy machine."""
ROWS = "".join(json.dumps({"prompt": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(40))


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with hub_server() as hub:
        weights = bytes(range(256)) * 2000
        files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": weights}
        hub.add("user/tiny", files, card={"license": "mit"})
        hub.add("user/sums", {"train.jsonl": ROWS.encode()}, kind="datasets")
        yield hub


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, hub: Hub) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    told = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(folder / "cache")}
    with serving(folder, **told) as served:
        yield served


def look_at(page: Page, what: str, repo: str) -> None:
    section = page.get_by_role("region", name="On the hub")
    section.get_by_text(what, exact=True).click()
    section.get_by_label("Id on the hub").fill(repo)
    section.get_by_role("button", name="Look").click()


def test_a_model_and_a_dataset_are_looked_at_downloaded_and_used(
    open_page: Callable[..., Page], saved_yaml: Callable[[Page], str], hub: Hub
) -> None:
    page = open_page("/loops")
    begin(page, "with-a-model")
    page.get_by_role("button", name="Actor").first.click()
    expect(node(page, "actor")).to_be_visible()
    page.get_by_role("tab", name="Models").click()

    look_at(page, "Model", "user/nothing")
    refusal = page.get_by_role("region", name="On the hub").get_by_role("alert")
    expect(refusal).to_contain_text("there is no model user/nothing")

    look_at(page, "Model", "user/tiny")
    found = page.get_by_role("article", name="user/tiny")
    expect(found).to_contain_text("mit")
    expect(found.get_by_text("all weights: fits")).to_be_visible()
    hub.fault("trickle", "/lfs/", times=1)
    found.get_by_role("button", name="Download").click()
    page.get_by_role("button", name="Cancel the download of user/tiny").click()
    page.get_by_role("button", name="Continue the download of user/tiny").click()
    found.get_by_role("button", name="Use in actor").click(timeout=A_PROCESS)
    expect(page.get_by_text("actor starts from user/tiny")).to_be_visible()
    assert re.search(r"type: pretrained,?\s+path: user/tiny", saved_yaml(page))

    look_at(page, "Dataset", "user/sums")
    rows = page.get_by_role("article", name="user/sums")
    expect(rows.get_by_role("cell", name="0+1=")).to_be_visible(timeout=A_PROCESS)
    rows.get_by_role("button", name=re.compile("^Download")).click()
    add = page.get_by_role("button", name="Add uploads/user-sums-train.jsonl as a dataset")
    add.click(timeout=A_PROCESS)
    expect(node(page, "dataset")).to_be_visible(timeout=A_PROCESS)
    assert "path: uploads/user-sums-train.jsonl" in saved_yaml(page)
