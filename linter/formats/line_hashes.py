"""GitHub's own fingerprint of a source line, by which its code scanning knows an alert again when lines above it come
or go. Where a result brings none, it is computed only if the file lies in the checkout that the upload comes from.

It is the rolling hash that GitHub documents as ``primaryLocationLineHash`` (SARIF support for code scanning): over the
100 characters from the beginning of the line on, blanks and tabs left out, as a polynomial in 37 modulo 2**64; then how
many lines up to this one have that hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = ["line_hashes"]

_WINDOW = 100
_BASE = 37
#: What stands behind the last character of a file.
_END = 0xFFFF


def line_hashes(lines: Sequence[str]) -> list[str]:
    """The fingerprint of every line, of a file whose last line has an end."""
    text = "".join(line.replace(" ", "").replace("\t", "") + "\n" for line in lines)
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2").astype(np.uint64)
    padded = np.concatenate([units, np.array([_END], np.uint64), np.zeros(_WINDOW, np.uint64)])
    starts = np.concatenate([[0], np.flatnonzero(units == ord("\n"))[:-1] + 1]) if len(units) else np.zeros(0, np.int64)
    hashes = np.zeros(len(starts), np.uint64)
    for offset in range(_WINDOW):
        hashes = hashes * np.uint64(_BASE) + padded[starts + offset]  # modulo 2**64, as unsigned integers are
    seen: Counter[int] = Counter()
    found = []
    for value in hashes.tolist():
        seen[value] += 1
        found.append(f"{value:x}:{seen[value]}")
    return found
