"""What a run reports: events, rates, samples, the final report."""
