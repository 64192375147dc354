"""Configurations of other frameworks."""
