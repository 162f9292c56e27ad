"""Stored runs to numbers and findings: what reports print and draw is computed here."""
