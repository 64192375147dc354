"""The application: settings in, ASGI app out.

headers -> faults -> host, origin, token -> gzip -> bodies -> routes /api/... | the page
"""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from coloop_server.blocks.routes import router as blocks
from coloop_server.bodies import JsonBodyMiddleware
from coloop_server.checks.routes import router as checks
from coloop_server.database.connect import Sessions, migrate, open_engine, open_sessions
from coloop_server.errors import Faults, add_error_handlers
from coloop_server.explain import router as explain
from coloop_server.files.routes import router as files
from coloop_server.frameworks.routes import router as frameworks
from coloop_server.health import own_version
from coloop_server.health import router as health
from coloop_server.hub.downloads import Downloads
from coloop_server.hub.routes import router as hub
from coloop_server.launchers import build_launchers, default_launcher
from coloop_server.lock import DatabaseLease, DataLock
from coloop_server.loops.routes import router as loops
from coloop_server.openapi import build_openapi
from coloop_server.pages import Pages, docs_router
from coloop_server.presets.gallery import Gallery
from coloop_server.presets.routes import router as presets
from coloop_server.previews.queue import PreviewQueue
from coloop_server.previews.routes import router as previews
from coloop_server.private import ensure_folder
from coloop_server.runs.routes import router as runs
from coloop_server.runs.supervisor import Supervisor
from coloop_server.runs.sweep_routes import router as sweeps
from coloop_server.security import Guard, SecurityHeaders
from coloop_server.session.routes import router as session
from coloop_server.session.throttle import Throttle
from coloop_server.session.tickets import TicketOffice, own_secret
from coloop_server.settings import Settings

SIGNED_OUT = "signed-out"
"""File of the data folder with revoked tickets."""

ROUTERS = (
    *(health, docs_router, session, presets, blocks, explain, checks, previews, files, hub),
    *(loops, runs, sweeps, frameworks),
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open data folder and database, and find runs in progress; release everything at the end."""
    settings: Settings = app.state.settings
    with app.state.lock:
        ensure_folder(settings.runs_dir)
        app.state.tickets = TicketOffice(own_secret(settings), settings.data_dir / SIGNED_OUT)
        app.state.throttle = Throttle()
        app.state.gallery = Gallery(settings.data_dir)
        app.state.previews = PreviewQueue(app.state.ending)
        app.state.downloads = Downloads()
        engine = open_engine(settings.database)
        try:
            await run_in_threadpool(migrate, engine)
            async with owning(settings, open_sessions(engine), app):
                yield
        finally:
            app.state.ending.set()
            await app.state.previews.close()
            await run_in_threadpool(app.state.downloads.close)
            engine.dispose()


@asynccontextmanager
async def owning(settings: Settings, sessions: Sessions, app: FastAPI) -> AsyncIterator[None]:
    """Run the supervisor as long as this server owns the database."""
    lease = DatabaseLease(sessions, settings.data_dir)
    await run_in_threadpool(lease.claim)
    try:
        supervisor = Supervisor(
            settings, sessions, build_launchers(settings), default_launcher(settings)
        )
        app.state.sessions, app.state.supervisor = sessions, supervisor
        await run_in_threadpool(supervisor.start)
        lease.keep(supervisor.step_down)
        try:
            yield
        finally:
            await run_in_threadpool(supervisor.close)
    finally:
        await run_in_threadpool(lease.close)


def create_app(settings: Settings | None = None, lock: DataLock | None = None) -> FastAPI:
    """The service as an ASGI application. `lock` is already held."""
    settings = settings or Settings()
    app = FastAPI(
        title="coloop",
        version=own_version(),
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(Faults),
            Middleware(Guard, settings=settings),
            Middleware(GZipMiddleware, minimum_size=1024, compresslevel=6),
            Middleware(JsonBodyMiddleware, max_bytes=settings.max_body_bytes),
        ],
    )
    app.state.lock = lock or DataLock(settings.data_dir)
    app.state.settings = settings
    app.state.ending = threading.Event()
    for router in ROUTERS:  # none of their routes knows the application that it is part of
        app.router.routes.extend(router.routes)
    app.router.redirect_slashes = False
    app.router.default = Pages(settings.static_dir)
    add_error_handlers(app)
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]
    return app
