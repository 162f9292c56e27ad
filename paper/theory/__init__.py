"""The paper's numerical study of the population minimiser, solved again, with its tables, figure and page."""
