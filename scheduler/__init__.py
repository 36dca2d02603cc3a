"""Machines, latency, the scheduling policies, bounds, what a schedule tells; liveness and the independent checker.

Knows no kernel language.
"""
