"""Looking at rewards and rows before a run: asked here, done in processes of their own."""
