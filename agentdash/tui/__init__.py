"""The screens. The only place that knows Textual."""
