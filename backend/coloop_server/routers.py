"""Routers of the service's parts: all below `/api`, all with the same errors."""

from fastapi import APIRouter

from coloop_server.errors import ERRORS


def router_of(tag: str, prefix: str = "") -> APIRouter:
    """Routes of one part, as the application takes them. Each is made once: to include a router in
    another one makes all its routes a second time."""
    return APIRouter(prefix=f"/api{prefix}", tags=[tag], responses=ERRORS)
