"""AdaFocal's training loop: after each epoch its gammas follow the calibration gap on validation data."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from focalcal import AdaFocalLoss

digits = load_digits()
images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
train, validation = order[:1200], order[1200:]

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
loss = AdaFocalLoss(bins=5)
history = []  # the gammas after each epoch, for a figure

for _ in range(20):
    for batch in train.split(100):
        optimiser.zero_grad()
        loss(network(images[batch]), labels[batch]).backward()
        optimiser.step()
    with torch.no_grad():
        loss.update(network(images[validation]).softmax(1), labels[validation])
    history.append(loss.gammas.tolist())

for epoch in (0, 9, 19):
    print(f"epoch {epoch + 1:2}: gammas " + "  ".join(f"{gamma:+.2f}" for gamma in history[epoch]))
