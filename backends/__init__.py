"""What is made of a graph and its schedules: numbers by numpy, pictures, pages, views.

Each module is a leaf of its own; nothing else in the package knows a drawing library or networkx.
"""
