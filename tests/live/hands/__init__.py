"""The installed program in the hand: real tmux, real workers, every key pressed, each part clicked.

Tables say what is pressed on which screen, and what must be seen then: `dashboard.py`, `replay.py`,
`library.py`. A key of `agentdash/tui/keys.py` that no table has fails `test_tables.py`.
"""
