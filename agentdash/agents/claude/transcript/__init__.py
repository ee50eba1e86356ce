"""Claude Code's transcripts: JSONL files with one record a line."""
