"""Dependencies of the routes, as annotated types. Async ones need no thread."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any

from fastapi import Depends
from sqlalchemy.orm import Session
from starlette.requests import HTTPConnection

from coloop_server.hub.downloads import Downloads
from coloop_server.presets.gallery import Gallery
from coloop_server.previews.queue import PreviewQueue
from coloop_server.runs.supervisor import Supervisor
from coloop_server.session.throttle import Throttle
from coloop_server.session.tickets import TicketOffice
from coloop_server.settings import Settings


def state_of(name: str) -> Callable[[HTTPConnection], Awaitable[Any]]:
    """A dependency on a part of the application's state."""

    async def part(connection: HTTPConnection) -> Any:
        return getattr(connection.app.state, name)

    return part


def session_of(connection: HTTPConnection) -> Iterator[Session]:
    """One transaction per request, committed when the route returns and before the response is
    sent."""
    with connection.app.state.sessions.begin() as session:
        yield session


SettingsOf = Annotated[Settings, Depends(state_of("settings"))]
ThrottleOf = Annotated[Throttle, Depends(state_of("throttle"))]
GalleryOf = Annotated[Gallery, Depends(state_of("gallery"))]
PreviewsOf = Annotated[PreviewQueue, Depends(state_of("previews"))]
DownloadsOf = Annotated[Downloads, Depends(state_of("downloads"))]
TicketsOf = Annotated[TicketOffice, Depends(state_of("tickets"))]
SupervisorOf = Annotated[Supervisor, Depends(state_of("supervisor"))]
SessionOf = Annotated[Session, Depends(session_of, scope="function")]
