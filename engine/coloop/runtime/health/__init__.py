"""Health checks on the metrics of a run, and their findings."""
