"""Whole screens: fleet, worker, why, help."""
