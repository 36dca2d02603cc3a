"""The loop of :mod:`.skyline_placement`: depth-first over skylines. Each part reads and writes columns that it is
given, and is compiled with the loop (:mod:`kernscope.ir.arrays.compiling`)."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["FITS", "NOTHING_FITS", "SPENT", "STATE", "Blocks", "skyline_pass"]

FITS, NOTHING_FITS, SPENT = 1, 0, 2
#: What stands in the state before addresses, failures and states that failed: the outcome, and the steps taken.
STATE = 2
_ENDLESS = 1 << 60
#: What is kept of a choice: the valley [0, 1) and its part [2, 3) of the sections, options from 4 up to 5, the trail
#: before it, its state's hash, the block, whether it is cut, and the choice in whose part it lies.
_FRAME = 11
#: Above so many blocks the sections' heights are not bounded at every step.
_MOST_BOUNDED = 3_000


class Blocks(NamedTuple):
    """By block, sorted by its first section: first and last section (exclusive), size, its twin before it (-1: none)
    and a random number; ``first`` by section: the blocks that begin there, or later; ``chance``: four random numbers
    a section."""

    lo: Any
    hi: Any
    size: Any
    twin: Any
    number: Any
    first: Any
    chance: Any


def skyline_pass(
    state: Any, blocks: Any, rank: Any, capacity: int, rule: int, most_steps: int, most_nodes: int, slots: int
) -> Any:
    """The loop. ``state``: outcome and steps so far; by block its address; by section how often the search failed
    there; hashes of states that failed. ``rank``: by block its place among options. ``rule``: of the valleys take the
    one of the fewest options (0), the lowest (1), or that of few options and many failures (2)."""
    lo, hi, size, twin, number, first, chance = blocks
    n = len(rank)
    sections = len(first) - 1
    weight = STATE + n
    table = weight + sections
    steps = [state[1]]
    # By section: everything below `sky` is decided; `real` is the top of what is placed; `rem` the undecided bytes,
    # `link` how many undecided blocks go on to the next section.
    sky = [0 for _ in range(sections)]
    real = [0 for _ in range(sections)]
    rem = [0 for _ in range(sections)]
    link = [0 for _ in range(sections)]
    code = [0 for _ in range(sections)]
    waiting = [0 for _ in range(sections)]
    done = [False for _ in range(n)]
    for j in range(n):
        for s in range(lo[j], hi[j]):
            rem[s] += size[j]
        for s in range(lo[j], hi[j] - 1):
            link[s] += 1
        waiting[lo[j]] ^= number[j]
    for s in range(sections):
        if rem[s] > capacity:
            state[0] = NOTHING_FITS
            return state
        code[s] = _code(0, 0, chance, s)
    perm = [j for j in range(n)]  # noqa: C416 - a list of range is no list to the compiler
    floor = [-1 for _ in range(n)]
    sums = [0 for _ in range(sections)]
    need = [0 for _ in range(sections + 1)]
    # By the first section of a valley what is known of it: end, options, slack; by section the valley it was seen in.
    owner = [0 for _ in range(sections)]
    known_end = [0 for _ in range(sections)]
    known_count = [0 for _ in range(sections)]
    frames = [0 for _ in range(0)]
    options = [0 for _ in range(0)]
    trail = [0 for _ in range(0)]
    chosen = [0 for _ in range(n + 1)]
    found = [0 for _ in range(n + 1)]
    depth = 0
    low = 0
    high = sections
    nodes = 0
    back = False
    while True:
        if not back:
            nodes += 1
            if steps[0] > most_steps or nodes > most_nodes:
                state[0] = SPENT
                state[1] = steps[0]
                return state
            # The innermost part that is not complete; those that are complete are never gone back into.
            begin = 0
            end = sections
            inside = 0
            at = depth
            while at > 0:
                f = (at - 1) * _FRAME
                if _is_open(frames[f + 2], frames[f + 3], rem):
                    begin = frames[f + 2]
                    end = frames[f + 3]
                    inside = at
                    break
                frames[f + 9] = 1
                at = frames[f + 10]
            if n <= _MOST_BOUNDED:
                full = _overfull(begin, end, low, high, capacity, lo, hi, size, done, sky, perm, floor, sums, steps)
                low = sections
                high = 0
                if full >= 0:
                    state[weight + full] += 1
                    back = True
                    continue
            steps[0] += end - begin
            least = _ENDLESS << 1
            va = -1
            vb = -1
            s = begin
            while s < end:
                if rem[s] == 0:
                    s += 1
                    continue
                a = s
                height = sky[s]
                s += 1
                while s < end and link[s - 1] > 0 and sky[s] == height:
                    s += 1
                left = sky[a - 1] if a > begin and link[a - 1] > 0 else _ENDLESS
                right = sky[s] if s < end and link[s - 1] > 0 else _ENDLESS
                if left < height or right < height:
                    continue
                if known_end[a] != s:
                    known_count[a] = _fill_options(
                        a,
                        s,
                        left,
                        right,
                        capacity,
                        lo,
                        hi,
                        size,
                        twin,
                        first,
                        done,
                        sky,
                        real,
                        rem,
                        link,
                        need,
                        found,
                        steps,
                    )
                    known_end[a] = s
                    for t in range(a, s):
                        owner[t] = a
                count = known_count[a]
                if count <= 1:
                    key = count - 2
                elif rule == 0:
                    key = (count << 40) | min(height, (1 << 40) - 1)
                elif rule == 1:
                    key = height
                else:
                    most = 1
                    for t in range(a, s):
                        most = max(most, state[weight + t])
                    key = (count << 40) // most
                if key < least:
                    least = key
                    va = a
                    vb = s
                    if count == 0:
                        break
            if va < 0:
                state[0] = FITS
                state[1] = steps[0]
                return state
            left = sky[va - 1] if va > begin and link[va - 1] > 0 else _ENDLESS
            right = sky[vb] if vb < end and link[vb - 1] > 0 else _ENDLESS
            count = _fill_options(
                va,
                vb,
                left,
                right,
                capacity,
                lo,
                hi,
                size,
                twin,
                first,
                done,
                sky,
                real,
                rem,
                link,
                need,
                chosen,
                steps,
            )
            if count == 0:
                for s in range(va, vb):
                    state[weight + s] += 1
                back = True
                continue
            ca = va
            cb = vb
            while ca > begin and link[ca - 1] > 0:
                ca -= 1
            while cb < end and link[cb - 1] > 0:
                cb += 1
            value = 0
            if count > 1:
                for s in range(ca, cb):
                    value ^= code[s] ^ waiting[s]
                if value != 0 and state[table + value % slots] == value:
                    back = True
                    continue
            _sort_by_rank(count, chosen, rank)
            base = frames[(depth - 1) * _FRAME + 5] if depth > 0 else 0
            while len(options) < base + count:
                options.append(0)
            for i in range(count):
                options[base + i] = chosen[i]
            f = depth * _FRAME
            while len(frames) < f + _FRAME:
                frames.append(0)
            frames[f] = va
            frames[f + 1] = vb
            frames[f + 2] = ca
            frames[f + 3] = cb
            frames[f + 4] = base
            frames[f + 5] = base + count
            frames[f + 6] = len(trail)
            frames[f + 7] = value
            frames[f + 8] = -1
            frames[f + 9] = 0
            frames[f + 10] = inside
            depth += 1
        else:
            if depth == 0:
                state[0] = NOTHING_FITS
                state[1] = steps[0]
                return state
            f = (depth - 1) * _FRAME
            j = frames[f + 8]
            if j >= 0:
                done[j] = False
                for s in range(lo[j], hi[j]):
                    rem[s] += size[j]
                for s in range(lo[j], hi[j] - 1):
                    link[s] += 1
                waiting[lo[j]] ^= number[j]
            while len(trail) > frames[f + 6]:
                real_before = trail.pop()
                sky_before = trail.pop()
                s = trail.pop()
                sky[s] = sky_before
                real[s] = real_before
                code[s] = _code(sky_before, real_before, chance, s)
            low = min(low, frames[f])
            high = max(high, frames[f + 1])
            for s in range(max(0, frames[f] - 1), min(frames[f + 1] + 1, sections)):
                known_end[owner[s]] = 0
            if frames[f + 9] == 1 or frames[f + 4] == frames[f + 5]:
                if frames[f + 9] == 0 and frames[f + 7] != 0:
                    state[table + frames[f + 7] % slots] = frames[f + 7]
                depth -= 1
                continue
        # --- the next option of the innermost choice
        back = False
        f = (depth - 1) * _FRAME
        a = frames[f]
        b = frames[f + 1]
        j = options[frames[f + 4]]
        frames[f + 4] += 1
        frames[f + 8] = j
        height = sky[a]
        left = sky[a - 1] if a > frames[f + 2] and link[a - 1] > 0 else _ENDLESS
        right = sky[b] if b < frames[f + 3] and link[b - 1] > 0 else _ENDLESS
        for s in range(a, b):
            trail.append(s)
            trail.append(sky[s])
            trail.append(real[s])
        steps[0] += 2 * (b - a)
        if j >= 0:
            top = height + size[j]
            if lo[j] > a:
                level = min(left, top) if link[lo[j] - 1] > 0 else left
                for s in range(a, lo[j]):
                    sky[s] = level
            for s in range(lo[j], hi[j]):
                sky[s] = top
                real[s] = top
                rem[s] -= size[j]
            for s in range(lo[j], hi[j] - 1):
                link[s] -= 1
            waiting[lo[j]] ^= number[j]
            done[j] = True
            state[STATE + j] = height
        else:
            for s in range(a, b):
                sky[s] = min(left, right)
        for s in range(a, b):
            code[s] = _code(sky[s], real[s], chance, s)
        low = min(low, a)
        high = max(high, b)
        for s in range(max(0, a - 1), min(b + 1, sections)):
            known_end[owner[s]] = 0


def _code(sky: int, real: int, chance: Any, s: int) -> int:
    """A hash of a section's two heights, of 62 bits: two modulo primes."""
    first = ((sky % 2147483647) * chance[4 * s] % 2147483647 + (real % 2147483647) * chance[4 * s + 1]) % 2147483647
    second = (sky % 2147483629) * chance[4 * s + 2] % 2147483629 + (real % 2147483629) * chance[4 * s + 3]
    return (first << 31) | (second % 2147483629)  # type: ignore[no-any-return]


def _is_open(begin: int, end: int, rem: Any) -> bool:
    """Whether some section of a part holds something undecided."""
    for s in range(begin, end):  # noqa: SIM110 - compiled code has no any()
        if rem[s] > 0:
            return True
    return False


def _fill_options(
    a: int,
    b: int,
    left: int,
    right: int,
    capacity: int,
    lo: Any,
    hi: Any,
    size: Any,
    twin: Any,
    first: Any,
    done: Any,
    sky: Any,
    real: Any,
    rem: Any,
    link: Any,
    need: Any,
    found: Any,
    steps: Any,
) -> int:
    """Fills in the blocks that may be the leftmost of the lowest in the valley [a, b), and -1 for none of them; how
    many options there are.

    Only placements of the least sum of addresses are looked for. So a block rests on one that is placed; twins go down
    in order; and no gap that is left behind would take an undecided block whole (``need``, by end: the least height at
    which a gap would)."""
    height = sky[a]
    count = 0
    slack = _ENDLESS
    for s in range(a, b):
        slack = min(slack, capacity - height - rem[s])
        need[s + 1] = _ENDLESS
    steps[0] += b - a
    fullest = 0
    takes = _ENDLESS
    for s in range(a, b):
        if s > a:
            fullest = max(fullest, rem[s - 1])
            takes = min(takes, need[s])
        blocked = s > a and height + 1 + fullest > capacity
        for j in range(first[s], first[s + 1]):
            steps[0] += 1
            if done[j] or hi[j] > b:
                continue
            top = 0
            for t in range(s, hi[j]):
                top = max(top, real[t])
            steps[0] += hi[j] - s
            need[hi[j]] = min(need[hi[j]], top + size[j])
            if blocked or top != height or height + size[j] > capacity:
                continue
            if twin[j] >= 0 and not done[twin[j]]:
                continue
            if s > a:
                level = min(left, height + size[j]) if link[s - 1] > 0 else left
                if level + fullest > capacity or takes <= level:
                    continue
            found[count] = j
            count += 1
    level = min(left, right)
    for s in range(a, b):
        takes = min(takes, need[s + 1])
    if level < _ENDLESS and level - height <= slack and takes > level:
        found[count] = -1
        count += 1
    return count


def _overfull(
    begin: int,
    end: int,
    low: int,
    high: int,
    capacity: int,
    lo: Any,
    hi: Any,
    size: Any,
    done: Any,
    sky: Any,
    perm: Any,
    floor: Any,
    sums: Any,
    steps: Any,
) -> int:
    """A section of a part that cannot hold its undecided blocks, or -1: for every height, the blocks whose floors are
    at least that lie above it. Floors are found anew where the skyline has changed, in [low, high)."""
    for i in range(len(perm)):
        # An insertion sort, the highest floor first: the order of the last time is nearly right.
        j = perm[i]
        if done[j] or lo[j] < begin or lo[j] >= end:
            floor[j] = -1
        elif floor[j] < 0 or (lo[j] < high and low < hi[j]):
            top = 0
            for s in range(lo[j], hi[j]):
                top = max(top, sky[s])
            floor[j] = top
            steps[0] += hi[j] - lo[j]
        to = i - 1
        while to >= 0 and floor[perm[to]] < floor[j]:
            perm[to + 1] = perm[to]
            to -= 1
        perm[to + 1] = j
        steps[0] += i - to
    for s in range(begin, end):
        sums[s] = 0
    for j in perm:
        if floor[j] < 0:
            break
        steps[0] += hi[j] - lo[j]
        for s in range(lo[j], hi[j]):
            sums[s] += size[j]
            if floor[j] + sums[s] > capacity:
                return s
    return -1


def _sort_by_rank(count: int, chosen: Any, rank: Any) -> None:
    """Sorts options by rank; none of the blocks comes last."""
    for i in range(1, count):
        j = chosen[i]
        to = i - 1
        while to >= 0 and j >= 0 and (chosen[to] < 0 or rank[chosen[to]] > rank[j]):
            chosen[to + 1] = chosen[to]
            to -= 1
        chosen[to + 1] = j
