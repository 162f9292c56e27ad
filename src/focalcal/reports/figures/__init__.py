"""Figures for print, drawn without pyplot: no global state, no window, the same bytes every time."""
