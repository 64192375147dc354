"""What a run keeps on disk, and how it goes on from there."""
