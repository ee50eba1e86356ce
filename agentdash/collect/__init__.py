"""Live sources: files, tmux, processes, screens."""
