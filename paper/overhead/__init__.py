"""What the objectives cost beside cross-entropy: the loss alone and within a training step."""
