"""Read tmux servers and go to their panes."""
