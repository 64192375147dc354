"""A hub on loopback for the tests of the hub."""

from tests.hub_server import hub, token

__all__ = ["hub", "token"]
