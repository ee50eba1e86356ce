"""Copilot CLI: its sessions."""
