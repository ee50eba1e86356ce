"""Gemini CLI, and what its fork Qwen Code shares with it."""
