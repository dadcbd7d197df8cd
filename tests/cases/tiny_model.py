"""A language model of a few thousand parameters, whose loss a global step divides by its tokens."""

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, LENGTH, WIDTH = 512, 32, 8


class TinyModel(nn.Module):
    """One block of causal attention; tokens and positions of shape [rows, LENGTH], int64."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.block = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, tokens, positions):
        seen = self.tokens(tokens) + self.positions(positions)
        query, key, value = self.mixed(seen).chunk(3, dim=-1)
        seen = seen + functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.last(seen + self.block(seen)) @ self.tokens.weight.T


def summed_loss(logits, labels):
    """Add up the loss of all labels but those of -100."""
    flat = labels.flatten()
    return functional.cross_entropy(logits.flatten(0, 1), flat, reduction="sum", ignore_index=-100)


def trained(model, optimizer, parts, *, ranks=1, added=lambda number: number):
    """Train one global step on this rank's microbatches; give the loss of the whole step.

    parts: (tokens, positions, labels) of each. ranks: over which the model averages gradients.
    added: adds up a tensor over those ranks.
    """
    tokens = added(torch.tensor(float(sum(int((labels >= 0).sum()) for *_, labels in parts))))
    loss = torch.zeros(())
    for ids, positions, labels in parts:
        part = summed_loss(model(ids, positions), labels) / tokens
        (part * ranks).backward()
        loss += part.detach()
    optimizer.step()
    optimizer.zero_grad()
    return float(added(loss))
