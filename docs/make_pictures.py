"""Draw the pictures that the README and the documentation show: ``python docs/make_pictures.py``."""

from __future__ import annotations

from pathlib import Path

import kernscope as ks
from kernscope.backends.gantt import draw_gantt
from kernscope.kernels.flash_attention import flash_attention

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Write them all."""
    graph = ks.trace(flash_attention.launch("2k"))
    ladder = ks.compare(graph)
    best = ladder["list"].schedule
    ks.draw(graph, IMAGES / "flash_attention.svg", schedule=best)
    schedules = [row.schedule for row in ladder if row.schedule is not None]
    draw_gantt(schedules, IMAGES / "flash_attention_timelines.svg")


if __name__ == "__main__":
    main()
