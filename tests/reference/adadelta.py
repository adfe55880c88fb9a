"""Writes adadelta.json: PyTorch's Adadelta on f(x) = sum(c_i x_i^2) / 2 in fp64.

Needs torch. Run again only when the reference itself changes: python3 tests/reference/adadelta.py
"""

import json
import pathlib

import torch

SETTINGS = {"lr": 0.5, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.01, "steps": 20}
COUNT = 5

x = torch.linspace(-1, 2, COUNT, dtype=torch.float64, requires_grad=True)
curvature = torch.linspace(0.5, 3, COUNT, dtype=torch.float64)
options = {key: value for key, value in SETTINGS.items() if key != "steps"}
optimizer = torch.optim.Adadelta([x], **options)
for _ in range(SETTINGS["steps"]):
    optimizer.zero_grad()
    ((curvature * x**2).sum() / 2).backward()
    optimizer.step()

result = {"torch": torch.__version__, **SETTINGS, "values": x.tolist()}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(result, indent=1) + "\n")
