"""The screens. The only package that imports Textual."""
