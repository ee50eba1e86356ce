"""Documents: structs for programs (JSON), their rendering for people, and exports of past sessions."""
