"""Programs in Perl, run under a hypothesis about the environment."""
