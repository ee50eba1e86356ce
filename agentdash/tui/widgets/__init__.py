"""Parts of screens, each a function of a snapshot."""
