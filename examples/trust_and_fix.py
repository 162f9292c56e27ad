"""Can a network's probabilities be trusted, and what would fix them? On scikit-learn's handwritten digits.

python examples/trust_and_fix.py
"""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from focalcal import Predictions, TemperatureScaling, bootstrap, metrics, split_half, summary


def overfitted_network(images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Trained for too long on few images, as networks often are: sure of itself."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(200):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images), labels).backward()
        optimiser.step()
    return network


def main() -> None:
    digits = load_digits()
    images, held_out, labels, truth = train_test_split(
        torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target), train_size=150, random_state=0
    )
    logits = overfitted_network(images, labels)(held_out).detach()

    predictions = Predictions(logits=logits, labels=truth, split="test", provenance={"model": "64-256-10"})
    with tempfile.TemporaryDirectory() as folder:  # anything below can be made again from this file
        predictions.save(Path(folder) / "digits.npz")
        predictions = Predictions.load(Path(folder) / "digits.npz")

    print(summary(logits=predictions.logits, labels=predictions.labels))
    print("\nECE with its error bar:", bootstrap(metrics.ece, predictions.probs, predictions.labels))
    print("\n" + str(metrics.reliability(predictions.probs, predictions.labels, n_bins=5)))

    result = split_half(predictions.logits, predictions.labels, TemperatureScaling(), seed=0)
    print(f"\nwith the temperature {result.calibrator.temperature_:.3f}, fitted on the other half of the rows:")
    for name, before in result.before.items():
        print(f"  {name:<14} {before:.4f} -> {result.after[name]:.4f}")


if __name__ == "__main__":
    main()
