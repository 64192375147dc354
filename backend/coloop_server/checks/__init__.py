"""Requests of the editor: catalog, checks, and reading and writing YAML."""
