"""`agentdash check` for CI: what fails it, and the formats SARIF, JUnit and GitHub annotations."""
