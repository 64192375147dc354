"""`/api/docs`: the OpenAPI document in Swagger UI.

Its files come from the package `fastapi-offline`, not from another site. The page itself is open,
like the composer's; the document and every route that it tries need the token, and Swagger UI sends
the ticket with which the composer signed in on the same origin.
"""

from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>coloop API</title>
<link rel="icon" href="/favicon.svg"><link rel="stylesheet" href="/api/docs/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="/api/docs/swagger-ui-bundle.js"></script><script src="/api/docs/start.js"></script>
</body></html>
"""
START = """const ticket = localStorage.getItem("coloop.ticket");
SwaggerUIBundle({
  url: "/api/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null,
  requestInterceptor: (request) => {
    if (ticket) request.headers.Authorization = `Bearer ${ticket}`;
    return request;
  },
});
"""
PATH = "/api/docs"
ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
FILES = ("/start.js", *(f"/{name}" for name in ASSETS))

router = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("")
def get_docs() -> HTMLResponse:
    return HTMLResponse(PAGE)


@router.get("/{name}")
def get_docs_file(name: str) -> Response:
    if name == "start.js":
        return Response(START, media_type="text/javascript")
    if name not in ASSETS:
        raise HTTPException(404, f"the API documentation has no file {name!r}")
    folder = files("fastapi_offline").joinpath("static")
    return FileResponse(str(folder.joinpath(name)), media_type=ASSETS[name])
