"""What routes ask for, as annotated types. What is at hand is given without a thread."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.orm import Session
from starlette.requests import HTTPConnection

from coloop_server.presets.gallery import Gallery
from coloop_server.runs.supervisor import Supervisor
from coloop_server.session.guesses import Guesses
from coloop_server.session.tickets import TicketOffice
from coloop_server.settings import Settings


async def settings_of(connection: HTTPConnection) -> Settings:
    settings: Settings = connection.app.state.settings
    return settings


async def supervisor_of(connection: HTTPConnection) -> Supervisor:
    supervisor: Supervisor = connection.app.state.supervisor
    return supervisor


async def tickets_of(connection: HTTPConnection) -> TicketOffice:
    tickets: TicketOffice = connection.app.state.tickets
    return tickets


async def guesses_of(connection: HTTPConnection) -> Guesses:
    guesses: Guesses = connection.app.state.guesses
    return guesses


async def gallery_of(connection: HTTPConnection) -> Gallery:
    gallery: Gallery = connection.app.state.gallery
    return gallery


def session_of(connection: HTTPConnection) -> Iterator[Session]:
    """One transaction a request: committed when the route has returned, before the answer goes."""
    with connection.app.state.sessions.begin() as session:
        yield session


SettingsOf = Annotated[Settings, Depends(settings_of)]
GuessesOf = Annotated[Guesses, Depends(guesses_of)]
GalleryOf = Annotated[Gallery, Depends(gallery_of)]
TicketsOf = Annotated[TicketOffice, Depends(tickets_of)]
SupervisorOf = Annotated[Supervisor, Depends(supervisor_of)]
SessionOf = Annotated[Session, Depends(session_of, scope="function")]
