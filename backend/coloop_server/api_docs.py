"""`/api/docs`: the OpenAPI document in Swagger UI.

Its files come from the package `fastapi-offline`, not from another site. The page itself is open,
like the composer's; the document and every route that it tries need the token, and Swagger UI sends
the ticket with which the composer signed in on the same origin.
"""

from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

PATH = "/api/docs"
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>coloop API</title>
<link rel="icon" href="/favicon.svg"><link rel="stylesheet" href="{PATH}/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="{PATH}/swagger-ui-bundle.js"></script><script src="{PATH}/start.js"></script>
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
ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
OPEN_PATHS = frozenset({PATH, f"{PATH}/start.js", *(f"{PATH}/{name}" for name in ASSETS)})
"""They hold nothing of the user's."""

router = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("")
def get_docs() -> HTMLResponse:
    return HTMLResponse(PAGE)


@router.get("/start.js")
def get_docs_start() -> Response:
    return Response(START, media_type="text/javascript")


@router.get("/{name}")
def get_docs_file(name: str) -> FileResponse:
    if name not in ASSETS:
        raise HTTPException(404, f"the API documentation has no file {name!r}")
    folder = files("fastapi_offline").joinpath("static")
    return FileResponse(str(folder.joinpath(name)), media_type=ASSETS[name])
