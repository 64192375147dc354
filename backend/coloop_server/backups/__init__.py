"""Backups of the database: loops with their history, and the records of runs."""
