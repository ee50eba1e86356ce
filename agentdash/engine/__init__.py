"""Events to snapshots: reduce, link, detect, judge."""
