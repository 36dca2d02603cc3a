"""The dataflow graph: dtypes, layouts, operations, tables of nodes and accesses, dependence, verification.

Knows no machine and no kernel language: a tracer writes graphs, and everything downstream reads them.
"""
