"""`python -m agentdash`."""

from agentdash.cli import main

if __name__ == "__main__":
    main()
