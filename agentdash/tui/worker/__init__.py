"""One worker: its panel with tabs, its screen, the evidence."""
