"""Tables, figures and pages made of what `analysis` computed."""
