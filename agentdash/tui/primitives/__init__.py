"""Widgets and text that several screens share: spans, lines, lists, columns, filter bar, footer, modal."""
