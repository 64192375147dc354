"""Machines: where hosts run. The runtime sees only `Cluster`."""

from coloop.workers.cluster.protocol import Cluster, Deadlines

__all__ = ["Cluster", "Deadlines", "Tick"]
