"""Rows and texts as roles read them, and scores of rows."""
