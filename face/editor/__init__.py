"""kernscope in an editor: a language server, and the process that looks at a file's kernels for it."""
