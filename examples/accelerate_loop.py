"""A training loop with accelerate: FCL as the loss, AdaFocal's update and metrics from the rows of every process.

`accelerate launch examples/accelerate_loop.py` runs it on several processes. A loss without state needs nothing; what
is measured on validation data needs the rows of all processes, which `gather_for_metrics` collects without the ones
that a sampler repeats. `AdaFocalLoss.update` takes rows that every process has as one set. Takes a second.
"""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from focalcal import AdaFocalLoss, bootstrap
from focalcal.metrics import ece

accelerator = Accelerator(cpu=True)
digits = load_digits()
rows = TensorDataset(torch.tensor(digits.data / 16).float(), torch.tensor(digits.target))
train, val = random_split(rows, [1400, 397], torch.Generator().manual_seed(0))
torch.manual_seed(0)  # the same weights in every process
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
loss = AdaFocalLoss().to(accelerator.device)  # or FocalCalibrationLoss(gamma=3, lam=1), which has nothing to update
network, optimizer, train, val = accelerator.prepare(
    network, torch.optim.Adam(network.parameters(), lr=1e-2), DataLoader(train, 64, shuffle=True), DataLoader(val, 64)
)
for _ in range(3):
    for images, labels in train:
        optimizer.zero_grad()
        accelerator.backward(loss(network(images), labels))
        optimizer.step()
    with torch.no_grad():
        batches = [accelerator.gather_for_metrics((network(images), labels)) for images, labels in val]
    logits, labels = (torch.cat(part) for part in zip(*batches, strict=True))
    probs = logits.softmax(1)
    loss.update(probs, labels)  # in every process, so that all train with the same gammas
if accelerator.is_main_process:
    print("ECE", bootstrap(ece, probs, labels, resamples=200))
