"""Parts that every screen uses: spans, lines, lists, footer."""
