"""Texts as rows of tokens, and vectors of words."""
