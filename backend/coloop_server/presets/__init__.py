"""Presets that ship with coloop, over HTTP."""
