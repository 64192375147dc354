"""Where the content of tags stands among the tokens of a text."""

from pathlib import Path

import pytest
from tests.engine.workers.test_worker import EDGES, NODES, settings_of

from coloop.workers.encoder import Encoder
from coloop.workers.worker import Worker


@pytest.fixture
def encoder(tmp_path: Path) -> Encoder:
    host = Worker(settings_of(NODES, EDGES, tmp_path))
    host.build()
    return host._homes["actor"].weights.encoder("actor")


def masked(encoder: Encoder, text: str, *tags: str) -> str:
    """What of a text of characters stands in the tags."""
    ids = encoder.said(text)
    assert len(ids) == len(text)
    return "|".join(text[part] for part in encoder.tagged(ids, tags))


@pytest.mark.parametrize(
    ("text", "tags", "content"),
    [
        ("a<out>bc</out>d", ("out",), "bc"),
        ("<out>1</out><out>2</out>", ("out",), "1|2"),
        ("<out></out>x", ("out",), ""),
        ("a<out>not closed", ("out",), "not closed"),
        ("<in>1</in><out>2</out>", ("out", "in"), "1|2"),
        ("<in>1</in>", ("out",), ""),
        ("<in>1</in>", (), ""),
        ("<out>1</in></out>", ("out", "in"), "1</in>"),
    ],
)
def test_the_content_of_tags_is_found(
    encoder: Encoder, text: str, tags: tuple[str, ...], content: str
) -> None:
    assert masked(encoder, text, *tags) == content
