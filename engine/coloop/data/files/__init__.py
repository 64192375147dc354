"""Files of rows: one reader for the run that draws them, the check of a loop and its estimate."""
