"""Figures for print, drawn without pyplot: no global state, no window, the same bytes every time."""

from focalcal.lab.report.figures.catalogue import Display, figures, save

__all__ = ["Display", "figures", "save"]
