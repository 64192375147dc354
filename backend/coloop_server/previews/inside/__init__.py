"""Code of the preview processes, which load the engine; the service does not."""
