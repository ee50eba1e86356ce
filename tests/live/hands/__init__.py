"""The installed program in the hand: real tmux, real workers, every key pressed, each part clicked.

Walks say what is pressed on which screen, and what is seen then: `dashboard.py`, `replay.py`. A key of
`agentdash/tui/keys.py` or a hint of a footer that no walk has fails `test_keys.py`.
"""
