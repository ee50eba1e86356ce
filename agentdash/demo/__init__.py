"""A scripted day of work, assembled from real recordings: what `agentdash demo` plays."""
