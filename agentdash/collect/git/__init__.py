"""Git repositories, read without running anything that a repository configures."""
