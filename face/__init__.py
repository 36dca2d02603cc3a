"""The face: the public functions, searches, assertions for test suites, the pytest plugin, and how a user's kernels are
found and their code is run. Puts the stages together; nothing below knows it."""
