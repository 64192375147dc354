"""Runs: starting, watching, stopping and replaying them through their folders."""
