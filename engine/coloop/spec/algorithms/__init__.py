"""What there is of algorithms: a record for each, and the registry of all (`registry`)."""
