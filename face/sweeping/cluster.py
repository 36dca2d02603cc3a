"""Points examined on a Dask cluster that is there already. kernscope is installed on its workers; the kernel is not:
its files travel with every point."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...ir.errors import ClusterError, MissingExtraError
from .processes import PointProcess
from .request import Request, Sources
from .result import SweepRow, failed_row

try:
    import distributed
except ImportError as missing:
    raise MissingExtraError("--cluster needs Dask", help='python -m pip install "kernscope[sweep]"') from missing

__all__ = ["examine_on_cluster", "examine_sent"]

_CONNECT_S = 10


def examine_on_cluster(
    address: str, request: Request, sources: Sources, points: Sequence[Mapping[str, str]], *, timeout_s: float
) -> Iterator[SweepRow]:
    """The rows of all points, as they come. A worker that is lost costs nothing but time: its points go to others.

    Raises ``ClusterError`` where there is no scheduler at the address, or it has no workers.
    """
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TimeoutError) as problem:
        raise ClusterError(
            f"no Dask scheduler answers at {address}", help="give its address, such as tcp://10.0.0.1:8786"
        ) from problem
    with client:
        if not client.scheduler_info()["workers"]:
            raise ClusterError(f"the cluster at {address} has no workers", help=f"start some: dask worker {address}")
        # One by one and not mapped: a point's key says nothing of its values, and none is computed for another.
        asked = {
            client.submit(examine_sent, request, sources, dict(point), timeout_s, pure=False): point for point in points
        }
        for future in distributed.as_completed(asked):
            error: Any = future.exception()
            yield future.result() if error is None else failed_row(asked[future], f"lost on the cluster: {error}")


def examine_sent(request: Request, sources: Sources, point: Mapping[str, str], timeout_s: float) -> SweepRow:
    """A worker's side: the kernel's files are unpacked where the worker keeps such things, and a process of its own
    examines the point, so that neither a crash nor a change of folder is the worker's."""
    root = unpacked(sources)
    here = attrs.evolve(request, target=attrs.evolve(request.target, source=str(root / sources.main)))
    process = PointProcess(here, timeout_s, str(root))
    try:
        return process.examine(point)
    finally:
        process.close()


def unpacked(sources: Sources) -> Path:
    """A folder with the files among those of the worker, which removes them in the end; made once for each content."""
    root = Path(distributed.get_worker().local_directory) / "kernscope" / sources.digest
    if root.is_dir():
        return root
    root.parent.mkdir(exist_ok=True)
    made = root.with_name(f"{root.name}-{uuid.uuid4().hex}")
    for name, content in sources.files.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        made.rename(root)
    except OSError:  # another one was quicker
        return root if root.is_dir() else made
    return root
