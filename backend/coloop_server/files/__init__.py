"""Data files that a user adds from the page."""
