"""Policies: what they wait for and hold, as data; what that makes of a graph on a machine; times, or a deadlock."""
