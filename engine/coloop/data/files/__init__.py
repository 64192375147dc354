"""Reads rows from files, for runs, checks and estimates; checksums and atomic writes."""
