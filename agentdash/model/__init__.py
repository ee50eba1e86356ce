"""Data types: events, fleet, workers, policies, evidence. No I/O and no clock."""
