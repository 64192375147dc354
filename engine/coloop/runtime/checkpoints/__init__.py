"""What a run keeps on disk, and how it resumes."""
