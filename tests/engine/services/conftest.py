"""Services on the loopback, listed as their port."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.engine.web_service import Behaviour, WebService, serving

from coloop.data.services import service as at_work
from coloop.data.services.endpoint import Endpoint
from coloop.data.services.service import Service


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], WebService]]:
    """Starts a server that runs may call."""
    with ExitStack() as stack:

        def start(behave: Behaviour) -> WebService:
            service = stack.enter_context(serving(behave))
            monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", service.host)
            return service

        yield start


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Service]]:
    """A client of an address, with pauses of milliseconds."""
    monkeypatch.setattr(at_work, "FIRST_PAUSE_SECONDS", 0.001)
    clients: list[Service] = []

    def make(url: str, **options: Any) -> Service:
        largest = (
            {"largest_reply": options.pop("largest_reply")} if "largest_reply" in options else {}
        )
        endpoint = Endpoint(node="judge", field="source.url", url=url, **{"retries": 0, **options})
        clients.append(Service(endpoint, **largest))
        return clients[-1]

    yield make
    for one in clients:
        one.close()
