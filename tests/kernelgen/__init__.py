"""The one generator of random kernels that all property tests draw from.

A :class:`Program` is a list of instructions: a name and a few small numbers. An interpreter carries it out against
``tl``: it picks operands by number among what is alive, and brings shapes and dtypes together with views and casts, so
that *any* list of instructions is a legal kernel, and stays one when some are taken away: examples shrink to a few
lines. What each instruction does stands in the file of its kind; a new one is a method ``do_...`` there, and its name
in :mod:`.program`.

What a program is made to hold: scopes that nest; views (slices, transposes, reshapes, broadcasts) of handles of outer
scopes; copies, also between overlapping views; loads with and without ``out=``, from regions, pointers and ragged
edges, these also where integer indices take dimensions away; loads that nobody uses, in flight when others take their
bytes; reads and writes of one HBM tensor; dot with and without ``acc=``; composites whose operands are streamed or lie
in scratch; reductions; ``empty`` buffers written in parts; narrow dtypes and sizes that are no multiple of the
alignment; messages between ranks, and ranks that do work of their own and pass on different numbers of messages. It
runs on the default machine or on one that differs in some numbers, and on rings and meshes. Addresses stay below a few
KB and are reused all the time. Every value (but those of the loads that nobody uses) ends in an HBM region of its own,
so that each of them matters, and all values are finite.

With ``memories`` a rank has several: values lie where the program says, or where the machine puts them, and are moved
to where an engine reaches them.

With ``faults`` a program also reads and writes handles of closed scopes and reads bytes that nothing wrote. With
``deadlocks`` the ranks' sends and receives may wait for each other for ever.
"""

from .orders import random_order
from .program import Instruction, Program, examples, programs, random_kernel

__all__ = ["Instruction", "Program", "examples", "programs", "random_kernel", "random_order"]
