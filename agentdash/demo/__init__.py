"""A scripted day of work, made of recordings of the real thing: what `agentdash demo` plays."""
