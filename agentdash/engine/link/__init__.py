"""Link processes, panes, threads and parents."""
