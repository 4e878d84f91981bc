"""Networks of PyTorch as estimators of scikit-learn: loops as its tutorials have them, peers of `learners.py`."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from torch import nn


class Noise(nn.Module):
    """Adds normal noise to inputs in training."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x + self.size * torch.randn_like(x) if self.training else x


class Network(BaseEstimator, ABC):
    """A network with a layer of tanh units, trained by adam on minibatches of cases in random order.

    Inputs and numeric targets are standardised by the training cases. The penalties are added to the sum of the
    objective over these, as in jaxgen. Dropout draws anew for each case.
    """

    def __init__(
        self, hidden=20, epochs=30, batch=32, rate=0.01, l1=0.0, l2=0.0, dropout=0.0, noise=0.0, batch_norm=False
    ):
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.l1 = l1
        self.l2 = l2
        self.dropout = dropout
        self.noise = noise
        self.batch_norm = batch_norm

    def fit(self, x, y):
        torch.manual_seed(0)
        torch.set_num_threads(1)  # as fast as two for such small products, and joblib may use the other
        targets, outputs, cost = self._targets(y)
        inputs = self._inputs(x, fitted=True)
        layers = [
            *([Noise(self.noise)] if self.noise else []),
            nn.Linear(x.shape[1], self.hidden),
            *([nn.BatchNorm1d(self.hidden)] if self.batch_norm else []),
            nn.Tanh(),
            *([nn.Dropout(self.dropout)] if self.dropout else []),
            nn.Linear(self.hidden, outputs),
        ]
        self.network_ = nn.Sequential(*layers)
        weights = [layer.weight for layer in layers if isinstance(layer, nn.Linear)]
        self._train(inputs, targets, cost, weights)
        return self

    @abstractmethod
    def _targets(self, y) -> tuple[Any, Any, Any]:
        """Targets as they are trained on, the outputs that these take, and the objective."""

    def _train(self, inputs, targets, cost, weights):
        adam, n = torch.optim.Adam(self.network_.parameters(), lr=self.rate), len(inputs)
        for _ in range(self.epochs):
            order = torch.randperm(n)
            for begin in range(0, n, self.batch):
                taken = order[begin : begin + self.batch]
                objective = cost(self.network_(inputs[taken]), targets[taken])
                if self.l2:
                    objective = objective + self.l2 / n * sum(weight.square().sum() / 2 for weight in weights)
                if self.l1:
                    objective = objective + self.l1 / n * sum(weight.abs().sum() for weight in weights)
                adam.zero_grad(set_to_none=True)
                objective.backward()
                adam.step()
        self.network_.eval()

    def _inputs(self, x, fitted=False):
        if fitted:
            self.centre_, self.scale_ = x.mean(0), x.std(0)
        return torch.tensor((x - self.centre_) / self.scale_, dtype=torch.float32)

    @torch.no_grad()
    def _outputs(self, x):
        return self.network_(self._inputs(x)).numpy()


class Regression(RegressorMixin, Network):
    """With half squared errors."""

    def _targets(self, y):
        self.mean_, self.unit_ = y.mean(), y.std()
        targets = torch.tensor((y - self.mean_) / self.unit_, dtype=torch.float32)[:, None]
        return targets, 1, lambda found, asked: 0.5 * nn.functional.mse_loss(found, asked)

    def predict(self, x):
        return self.mean_ + self.unit_ * self._outputs(x)[:, 0]


class Classification(ClassifierMixin, Network):
    """With the cross-entropy of softmax."""

    def _targets(self, y):
        self.classes_, numbers = np.unique(y, return_inverse=True)
        return torch.tensor(numbers), len(self.classes_), nn.functional.cross_entropy

    def predict(self, x):
        return self.classes_[self._outputs(x).argmax(1)]


class StoppedEarly(Regression):
    """Networks, each trained by gradient descent on all portions of the training cases but one, and taken from that
    save where this portion's error was least; the prediction is their mean.
    """

    def __init__(self, hidden=20, members=4, steps=500, rate=0.1, saves=()):
        super().__init__(hidden=hidden, rate=rate)
        self.members = members
        self.steps = steps
        self.saves = saves

    def fit(self, x, y):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        targets, _, _ = self._targets(y)
        inputs, saves = self._inputs(x, fitted=True), set(self.saves)
        self.networks_ = []
        for validating in np.array_split(np.random.default_rng(0).permutation(len(x)), self.members):
            learning = np.setdiff1d(np.arange(len(x)), validating)
            network = nn.Sequential(nn.Linear(x.shape[1], self.hidden), nn.Tanh(), nn.Linear(self.hidden, 1))
            descent = torch.optim.SGD(network.parameters(), lr=self.rate / (len(learning) + 1))
            mine, theirs = (inputs[learning], targets[learning]), (inputs[validating], targets[validating])
            least, best = np.inf, network.state_dict()
            for step in range(1, self.steps + 1):
                descent.zero_grad(set_to_none=True)
                (0.5 * (network(mine[0]) - mine[1]).square().sum()).backward()
                descent.step()
                if step in saves:
                    with torch.no_grad():
                        error = nn.functional.mse_loss(network(theirs[0]), theirs[1]).item()
                    if error < least:
                        least, best = error, {name: value.clone() for name, value in network.state_dict().items()}
            network.load_state_dict(best)
            self.networks_.append(network)
        return self

    @torch.no_grad()
    def _outputs(self, x):
        inputs = self._inputs(x)
        return np.mean([network(inputs).numpy() for network in self.networks_], axis=0)
