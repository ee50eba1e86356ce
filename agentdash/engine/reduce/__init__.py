"""Reduce events to a fleet."""
