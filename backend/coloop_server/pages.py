"""Serves the built page: its files, and its one HTML for every address that it routes itself.

`/api/docs` shows the OpenAPI document in Swagger UI, whose files the package `fastapi-offline` has.
"""

import re
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>coloop</title>
<style>body{font:16px/1.6 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem}
code{background:#8883;padding:.1em .35em;border-radius:4px}</style></head>
<body><h1>The page is not built</h1>
<p>The server runs and its API answers below <code>/api</code>, but there is no page beside it.</p>
<p>In a clone run <code>make run</code>, which builds and serves it. To build it alone:
<code>cd frontend &amp;&amp; npm ci &amp;&amp; npm run build</code>, then load this address again.
An installed wheel includes the page.</p></body></html>
"""


class Pages(StaticFiles):
    """Static files with `index.html` as fallback; the folder may appear while the server runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, check_dir=False, html=False)
        self.index = folder / "index.html"

    async def check_config(self) -> None:
        """A missing folder is answered by a page with help."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not is_page(scope["path"]):
            raise HTTPException(404, "there is no such route")
        if not is_file(path):
            return await self.page(scope)
        response = await super().get_response(path, scope)
        is_hashed = path.startswith("assets/") and response.status_code in (200, 304)
        response.headers["cache-control"] = FOREVER if is_hashed else ASK_AGAIN
        return response

    async def page(self, scope: Scope) -> Response:
        if not self.index.is_file():
            return HTMLResponse(NOT_BUILT, 503, {"cache-control": "no-store"})
        response = await super().get_response("index.html", scope)
        response.headers["cache-control"] = ASK_AGAIN
        return response


def is_page(path: str) -> bool:
    """Whether an address can be a page: not below the API, neither as written nor after decoding,
    and without `..`."""
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    is_plain = not {".", ".."} & set(parts) and "\\" not in path and path.isprintable()
    return is_plain and parts[:1] != ["api"]


def is_file(path: str) -> bool:
    """Whether an address can be a built file, at the top or in `assets`; addresses of pages are
    deeper, and names in them may contain a dot."""
    folder, _, name = path.rpartition("/")
    return path.startswith("assets/") or (not folder and name != "index.html" and "." in name[1:])


DOCS = "/api/docs"
DOCS_PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>coloop API</title>
<link rel="icon" href="/favicon.svg"><link rel="stylesheet" href="{DOCS}/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="{DOCS}/swagger-ui-bundle.js"></script><script src="{DOCS}/start.js"></script>
</body></html>
"""
DOCS_START = """const ticket = localStorage.getItem("coloop.ticket");
SwaggerUIBundle({
  url: "/api/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null,
  requestInterceptor: (request) => {
    if (ticket) request.headers.Authorization = `Bearer ${ticket}`;
    return request;
  },
});
"""
DOCS_ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
OPEN_DOCS = frozenset({DOCS, f"{DOCS}/start.js", *(f"{DOCS}/{name}" for name in DOCS_ASSETS)})
"""Public, as they contain no user data. The OpenAPI document and all routes that Swagger UI tries
need the token; it sends the composer's ticket of the same origin."""

docs_router = APIRouter(prefix=DOCS, include_in_schema=False)


@docs_router.get("")
def get_docs() -> HTMLResponse:
    return HTMLResponse(DOCS_PAGE)


@docs_router.get("/start.js")
def get_docs_start() -> Response:
    return Response(DOCS_START, media_type="text/javascript")


@docs_router.get("/{name}")
def get_docs_file(name: str) -> FileResponse:
    if name not in DOCS_ASSETS:
        raise HTTPException(404, f"the API documentation has no file {name!r}")
    folder = files("fastapi_offline").joinpath("static")
    return FileResponse(str(folder.joinpath(name)), media_type=DOCS_ASSETS[name])
