"""Records of all algorithms and advantages (`registry`)."""
