"""The loop of :mod:`.destructive`: makespans are tried, and refuted by time windows of all nodes.

Windows (earliest start, latest end) are narrowed along the edges, and on engines of one lane by what must come before
or after what: edge finding, and detectable precedences, both on trees of O(log n) a change (Vilim 2004; Vilim, Bartak
and Cepek 2005), forwards and with time running backwards. On an engine of several lanes the work that cannot but lie in
an interval is set against what the lanes can do there (energetic reasoning: Baptiste, Le Pape and Nuijten 1999).
Narrowing removes no schedule, so that a window that is too short refutes the makespan.
"""

from __future__ import annotations

from typing import Any

__all__ = ["bisect_pass"]

_NEVER = -(1 << 60)
#: How many starts of intervals are tried on an engine of several lanes; all, where there are fewer.
_STARTS = 128
#: How many rounds of narrowing a probe of one node's window gets. Chosen by hand: most end after two or three.
_PROBE_ROUNDS = 20


def bisect_pass(
    head: Any,
    tail: Any,
    duration: Any,
    pred_start: Any,
    source: Any,
    engine: Any,
    lanes: Any,
    member_start: Any,
    members: Any,
    lowest: int,
    highest: int,
    budget: int,
    probes: int,
) -> int:
    """The loop: ``lowest`` if no makespan from there on is refuted, else the least one that is not, up to ``highest``
    (which is known to be possible). Nodes are in topological order; ``engine`` is -1 for what takes none or no time,
    ``members`` are the nodes by engine. The budget is of steps; when it is spent, nothing more is refuted. ``probes``:
    whether single windows are probed as well; then one makespan gets half of what is left of the budget."""
    n = len(head)
    longest = 1
    for on in range(len(lanes)):
        longest = max(longest, member_start[on + 1] - member_start[on])
    leaves = 1
    while leaves < longest:
        leaves *= 2
    trees = [[0 for _ in range(2 * leaves)] for _ in range(6)]
    room = [[0 for _ in range(longest)] for _ in range(5)]
    low = [0 for _ in range(n)]
    high = [0 for _ in range(n)]
    kept_low = [0 for _ in range(n)]
    kept_high = [0 for _ in range(n)]
    queue = [0 for _ in range(n)]
    # By engine: whether a window on it has moved since it was last narrowed; the last is for nodes on none.
    touched = [False for _ in range(len(lanes) + 1)]
    spent = [0]
    # What is refuted, and what is not: first the makespan right below the one that is known, then by halves.
    bad = lowest - 1
    good = highest
    tried = highest - 1
    while good - bad > 1 and spent[0] < budget:
        for node in range(n):
            low[node] = head[node]
            high[node] = tried - tail[node]
        for on in range(len(lanes)):
            touched[on] = True
        limit = budget - (budget - spent[0]) // 2 if probes == 1 else budget
        # A round of narrowing, or a probe: one node is made to start early, or to end late.
        phase = 0
        probed = 0
        count = 0
        moved = False
        late = False
        part = 0
        refuted = False
        while True:
            wrong = _narrow(
                low,
                high,
                duration,
                pred_start,
                source,
                engine,
                lanes,
                member_start,
                members,
                touched,
                trees,
                room,
                spent,
                _PROBE_ROUNDS if phase == 1 else 1 << 30,
                limit,
            )
            if phase == 0:
                if wrong:
                    refuted = True
                    break
                if probes == 0 or spent[0] >= limit:
                    break
                for node in range(n):
                    kept_low[node] = low[node]
                    kept_high[node] = high[node]
                if count == 0 or (probed >= count and moved):
                    count = _queue_narrow(low, high, duration, lanes, member_start, members, queue)
                    probed = 0
                    moved = False
                    late = False
                    part = 0
            else:
                # Back to the windows before the probe, less what it has refuted.
                for node in range(n):
                    low[node] = kept_low[node]
                    high[node] = kept_high[node]
                for on in range(len(lanes)):
                    touched[on] = False
                if spent[0] >= limit:
                    break
                node = queue[probed]
                if wrong:
                    moved = True
                    if late:
                        high[node] -= part
                    else:
                        low[node] += part
                    touched[engine[node]] = True
                    part = 0
                    phase = 0
                    continue
                spare = high[node] - low[node] - duration[node]
                if part > 1 and part > spare // 8:
                    part //= 2
                elif late:
                    late = False
                    probed += 1
                    part = 0
                else:
                    late = True
                    part = 0
            # --- the next probe
            phase = 1
            while probed < count:
                spare = high[queue[probed]] - low[queue[probed]] - duration[queue[probed]]
                if spare > 0:
                    break
                probed += 1
                late = False
                part = 0
            if probed >= count:
                if not moved:
                    break
                phase = 0
                continue
            node = queue[probed]
            spare = high[node] - low[node] - duration[node]
            part = max(spare // 2, 1) if part == 0 else min(part, spare)
            if late:
                low[node] = high[node] - duration[node] - part + 1
            else:
                high[node] = low[node] + duration[node] + part - 1
            touched[engine[node]] = True
        if refuted:
            bad = tried
        else:
            good = tried
        tried = bad + (good - bad) // 2
    return max(bad + 1, lowest)


def _queue_narrow(low: Any, high: Any, duration: Any, lanes: Any, member_start: Any, members: Any, queue: Any) -> int:
    """Fills in the nodes on engines, those of the least spare time first; how many there are."""
    keys = [0 for _ in range(0)]
    for at in range(member_start[len(lanes)]):
        node = members[at]
        keys.append((high[node] - low[node] - duration[node]) * len(low) + node)
    keys.sort()
    for at in range(len(keys)):
        queue[at] = keys[at] % len(low)
    return len(keys)


def _narrow(
    low: Any,
    high: Any,
    duration: Any,
    pred_start: Any,
    source: Any,
    engine: Any,
    lanes: Any,
    member_start: Any,
    members: Any,
    touched: Any,
    trees: Any,
    room: Any,
    spent: Any,
    rounds: int,
    budget: int,
) -> bool:
    """Narrows the windows until nothing moves, where ``touched`` says that something may; whether one is too short."""
    n = len(low)
    head, takes, latest, raised, place = room[0], room[1], room[2], room[3], room[4]
    done = 0
    while done < rounds and spent[0] < budget:
        done += 1
        spent[0] += 2 * (n + len(source))
        for node in range(n):
            for arc in range(pred_start[node], pred_start[node + 1]):
                end = low[source[arc]] + duration[source[arc]]
                if end > low[node]:
                    low[node] = end
                    touched[engine[node]] = True
        for node in range(n - 1, -1, -1):
            begin = high[node] - duration[node]
            if begin < low[node]:
                return True
            for arc in range(pred_start[node], pred_start[node + 1]):
                if high[source[arc]] > begin:
                    high[source[arc]] = begin
                    touched[engine[source[arc]]] = True
        changed = False
        for on in range(len(lanes)):
            first = member_start[on]
            size = member_start[on + 1] - first
            if size < 2 or lanes[on] > 1 or not touched[on]:
                continue
            touched[on] = False
            for back in range(2):
                for at in range(size):
                    node = members[first + at]
                    takes[at] = duration[node]
                    head[at] = -high[node] if back == 1 else low[node]
                    latest[at] = -low[node] if back == 1 else high[node]
                    raised[at] = head[at]
                if not _raise_on_engine(size, head, takes, latest, raised, place, trees, spent):
                    return True
                for at in range(size):
                    node = members[first + at]
                    if back == 0 and raised[at] > low[node]:
                        low[node] = raised[at]
                        touched[on] = True
                        changed = True
                    if back == 1 and -raised[at] < high[node]:
                        high[node] = -raised[at]
                        touched[on] = True
                        changed = True
        if not changed:
            break
    for on in range(len(lanes)):
        first = member_start[on]
        size = member_start[on + 1] - first
        if touched[on] and lanes[on] > 1 and size > lanes[on]:
            touched[on] = False
            if _is_overfull(first, size, members, low, high, duration, lanes[on], spent):
                return True
    return False


def _is_overfull(
    first: int, size: int, members: Any, low: Any, high: Any, duration: Any, lanes: int, spent: Any
) -> bool:
    """Whether in some interval more work must lie than the lanes can do. A node that may run from ``low`` to ``high``
    has, in [a, b], at least min(what is left of it after a if it starts early, what of it lies before b if it starts
    late): for one a that is a ramp in b, so that all b are met by one sweep over the ramps' ends."""
    starts = [0 for _ in range(0)]
    for at in range(first, first + size):
        node = members[at]
        starts.append(low[node])
        starts.append(high[node] - duration[node])
    starts.sort()
    apart = 1 + (2 * size - 1) // _STARTS
    for number in range(0, 2 * size, apart):
        begin = starts[number]
        if number >= apart and begin == starts[number - apart]:
            continue
        ramps = [0 for _ in range(0)]
        for at in range(first, first + size):
            node = members[at]
            least = min(duration[node], low[node] + duration[node] - begin)
            if least > 0:
                since = max(high[node] - duration[node], begin)
                ramps.append(2 * since + 1)
                ramps.append(2 * (since + least))
        ramps.sort()
        spent[0] += 8 * size
        running = 0
        work = 0
        now = begin
        for ramp in ramps:
            at = ramp >> 1
            work += running * (at - now)
            now = at
            if ramp & 1 == 1:
                running += 1
                continue
            running -= 1
            if work > lanes * (now - begin):
                return True
    return False


def _raise_on_engine(
    size: int, head: Any, takes: Any, latest: Any, raised: Any, place: Any, trees: Any, spent: Any
) -> bool:
    """Raises the earliest starts on one lane (``raised`` comes in as ``head``); false where some interval has too much
    work.

    The trees' leaves are the nodes by earliest start. Of a set of nodes, ``load`` and ``until`` are the sum of their
    times and the earliest end of all of them in a row; ``grey_load`` and ``grey_until`` the same with one grey node
    more, the one that makes most of it, and ``load_of`` and ``until_of`` say which."""
    load, until, grey_load, grey_until, load_of, until_of = (
        trees[0],
        trees[1],
        trees[2],
        trees[3],
        trees[4],
        trees[5],
    )
    leaves = 1
    levels = 1
    while leaves < size:
        leaves *= 2
        levels += 1
    spent[0] += 12 * size * levels
    by_head = _sorted_by(size, head, head, 0)
    by_end = _sorted_by(size, head, takes, 1)
    by_latest = _sorted_by(size, latest, latest, 0)
    by_begin = _sorted_by(size, latest, takes, -1)
    for at in range(2 * leaves):
        load[at] = 0
        until[at] = _NEVER
        grey_load[at] = 0
        grey_until[at] = _NEVER
        load_of[at] = -1
        until_of[at] = -1
    for at in range(size):
        node = by_head[at]
        place[node] = leaves + at
        load[leaves + at] = takes[node]
        until[leaves + at] = head[node] + takes[node]
        grey_load[leaves + at] = takes[node]
        grey_until[leaves + at] = head[node] + takes[node]
    for at in range(leaves - 1, 0, -1):
        _sum_grey(at, load, until, grey_load, grey_until, load_of, until_of)
    # --- edge finding: what has the latest end turns grey, one after another; a grey node that cannot end in time with
    # all the others comes after them
    for number in range(size - 1, 0, -1):
        node = by_latest[number]
        if until[1] > latest[node]:
            return False
        at = place[node]
        load[at] = 0
        until[at] = _NEVER
        load_of[at] = node
        until_of[at] = node
        _sum_grey_up(at, load, until, grey_load, grey_until, load_of, until_of)
        before = latest[by_latest[number - 1]]
        while grey_until[1] > before and until_of[1] >= 0:
            node = until_of[1]
            if until[1] > raised[node]:
                raised[node] = until[1]
            at = place[node]
            grey_load[at] = 0
            grey_until[at] = _NEVER
            load_of[at] = -1
            until_of[at] = -1
            _sum_grey_up(at, load, until, grey_load, grey_until, load_of, until_of)
    if until[1] > latest[by_latest[0]]:
        return False
    # --- detectable precedences: a node comes after all that could not begin after its end
    for at in range(2 * leaves):
        load[at] = 0
        until[at] = _NEVER
        grey_load[at] = 0
    filled = 0
    for number in range(size):
        node = by_end[number]
        end = head[node] + takes[node]
        while filled < size and end > latest[by_begin[filled]] - takes[by_begin[filled]]:
            other = by_begin[filled]
            at = place[other]
            load[at] = takes[other]
            until[at] = head[other] + takes[other]
            grey_load[at] = 1
            _sum_up(at, load, until)
            filled += 1
        at = place[node]
        inside = grey_load[at] == 1
        if inside:
            load[at] = 0
            until[at] = _NEVER
            _sum_up(at, load, until)
        if until[1] > raised[node]:
            raised[node] = until[1]
        if inside:
            load[at] = takes[node]
            until[at] = end
            _sum_up(at, load, until)
    return True


def _sorted_by(size: int, first: Any, second: Any, times: int) -> Any:
    """The numbers below ``size`` by ``first`` and ``times`` the ``second``; of equal ones the smaller first."""
    least = 0
    for at in range(size):
        least = min(least, first[at] + times * second[at])
    keys = [(first[at] + times * second[at] - least) * size + at for at in range(size)]
    keys.sort()
    return [key % size for key in keys]


def _sum_up(at: int, load: Any, until: Any) -> None:
    """Sums of a leaf's ancestors anew, without grey nodes."""
    at //= 2
    while at >= 1:
        right = 2 * at + 1
        load[at] = load[right - 1] + load[right]
        until[at] = max(until[right - 1] + load[right], until[right])
        at //= 2


def _sum_grey_up(at: int, load: Any, until: Any, grey_load: Any, grey_until: Any, load_of: Any, until_of: Any) -> None:
    """Sums of a leaf's ancestors anew."""
    at //= 2
    while at >= 1:
        _sum_grey(at, load, until, grey_load, grey_until, load_of, until_of)
        at //= 2


def _sum_grey(at: int, load: Any, until: Any, grey_load: Any, grey_until: Any, load_of: Any, until_of: Any) -> None:
    """The sums of a place in the tree from those of the two below it."""
    left = 2 * at
    right = left + 1
    load[at] = load[left] + load[right]
    until[at] = max(until[left] + load[right], until[right])
    if grey_load[left] + load[right] >= load[left] + grey_load[right]:
        grey_load[at] = grey_load[left] + load[right]
        load_of[at] = load_of[left]
    else:
        grey_load[at] = load[left] + grey_load[right]
        load_of[at] = load_of[right]
    grey_until[at] = grey_until[right]
    until_of[at] = until_of[right]
    if until[left] + grey_load[right] > grey_until[at]:
        grey_until[at] = until[left] + grey_load[right]
        until_of[at] = load_of[right]
    if grey_until[left] + load[right] > grey_until[at]:
        grey_until[at] = grey_until[left] + load[right]
        until_of[at] = until_of[left]
