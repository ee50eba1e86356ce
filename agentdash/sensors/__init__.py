"""The live world: files that grow, tmux panes, processes. Sensors report; they decide nothing."""
