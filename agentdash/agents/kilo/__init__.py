"""Kilo CLI: its sessions."""
