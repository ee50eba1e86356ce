"""Judge a fleet: states, verdicts, findings."""
