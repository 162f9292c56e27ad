"""Tables, figures and pages made of results; nothing here computes what they show."""
