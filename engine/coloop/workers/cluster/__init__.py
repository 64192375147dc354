"""Machines: where workers run. The runtime sees only `Cluster`."""

from coloop.workers.cluster.ranks import Cluster, Deadlines

__all__ = ["Cluster", "Deadlines"]
