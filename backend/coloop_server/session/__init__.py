"""Signing in to a server that has a token."""
