"""Built-in presets, over HTTP."""
