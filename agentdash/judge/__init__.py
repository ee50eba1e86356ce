"""Pure judgement: events into a fleet, a fleet into states, findings and kinship. No I/O, no clock."""
