"""Replay controls."""
