"""What runs in the processes of previews. They load the engine; the service does not."""
