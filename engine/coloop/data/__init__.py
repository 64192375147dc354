"""Rows: tables with lineage, sources, tasks, templates, filters, rewards, tools, metrics.

Outside of `tables`, rows are plain dicts of columns. Nothing here knows models or devices, and
importing it loads neither torch nor transformers.
"""
