"""Whether a run learns: health checks over metrics, and what they say."""
