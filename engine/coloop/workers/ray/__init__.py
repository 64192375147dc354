"""Ray: the cluster of workers on it, and how a Ray of our own is started, watched and ended."""
