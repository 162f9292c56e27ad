"""Tables, figures and pages of stored runs, made of what `evidence` computed."""
