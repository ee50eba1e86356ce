"""What texts prove: shell scripts as syntax (`shell`). Pure."""
