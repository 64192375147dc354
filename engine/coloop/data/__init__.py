"""Where rows come from and what becomes of them: sources, tasks, templates, filters, metrics.

Everything here works on plain dicts of columns; it knows nothing of lineage, models or devices, and
importing it loads neither torch nor transformers.
"""
