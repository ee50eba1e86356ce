"""Detect facts in text: environment flags, denials, escalations."""
