"""What texts prove: shell scripts as syntax (`shell`), flags that commands printed (`flags`). Pure."""
