"""The paper's printed numbers and claims, and what stored runs say of them."""
