"""What a rehearsal puts in the place of services: it reaches no other machine."""

from typing import Any
from urllib.parse import urlsplit

MADE_NUMBERS = """\
def reward(prompts, completions, **columns):
    return [float(len(completion) % 2) for completion in completions]
"""
"""Numbers that differ between texts, so that groups have something to learn."""


def without_services(document: dict[str, Any]) -> list[str]:
    """Score here what a service would score; which, is told."""
    notes = []
    for name, node in document["nodes"].items():
        source = node.get("source", {})
        if node["kind"] == "reward" and source.get("type") == "remote":
            node["source"] = {"type": "python", "code": MADE_NUMBERS}
            host = urlsplit(source["url"]).hostname
            notes.append(f"`{name}`: made numbers in place of the service at {host}")
    return notes
