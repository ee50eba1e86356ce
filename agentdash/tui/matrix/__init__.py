"""The matrix: all workers by what is observed of their sandboxes."""
