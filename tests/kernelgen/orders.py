"""Orders in which a graph's nodes may run."""

from __future__ import annotations

import heapq
import random

import numpy as np

import kernscope as ks

__all__ = ["random_order"]


def random_order(graph: ks.Graph, seed: int) -> list[int]:
    """A random topological order: of the nodes that could run, always one with the lowest random number. Sometimes all
    numbers fall with the id, so that everything runs as early against program order as it may."""
    rng = random.Random(seed)
    number = [rng.random() if seed % 3 else -node for node in range(len(graph))]
    waiting = np.bincount(graph.edges.target, minlength=len(graph)).tolist()
    followers: list[list[int]] = [[] for _ in range(len(graph))]
    for source, target in zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True):
        followers[source].append(target)
    ready = [(number[node], node) for node in range(len(graph)) if not waiting[node]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for follower in followers[node]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, (number[follower], follower))
    assert len(order) == len(graph)
    return order
