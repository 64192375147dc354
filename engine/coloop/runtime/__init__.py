"""The driver: time, stages, tables, checkpoints, events. It names no algorithm and no recipe."""
