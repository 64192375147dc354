"""Numbers for rows: the built-in rewards, and the user's Python in a limited process of its own.

Works on plain columns and scores; knows nothing of lineage, models or devices. Importing it loads
neither torch nor transformers.
"""
