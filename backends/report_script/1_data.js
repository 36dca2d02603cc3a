// The page's data: packed columns become typed arrays, and each schedule gets its rows (an engine's lanes).

async function unpack(column) {
  const text = atob(column.data);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const kinds = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };
  const stored = new kinds[column.type](bytes);
  if (!column.delta) return stored;
  let low = 0, high = 0, sum = 0;
  for (let i = 0; i < stored.length; i++) {
    sum += stored[i];
    if (sum < low) low = sum; else if (sum > high) high = sum;
  }
  const fits = low >= -2147483648 && high <= 2147483647;
  const values = fits ? new Int32Array(stored.length) : new Float64Array(stored.length);
  sum = 0;
  for (let i = 0; i < stored.length; i++) values[i] = sum += stored[i];
  return values;
}

const isPacked = (value) => value !== null && typeof value === "object" && typeof value.data === "string";

// The same document with every packed column in it unpacked.
async function unpackAll(value) {
  if (isPacked(value)) return unpack(value);
  if (Array.isArray(value)) return Promise.all(value.map(unpackAll));
  if (value === null || typeof value !== "object") return value;
  const entries = await Promise.all(Object.entries(value).map(async ([key, one]) => [key, await unpackAll(one)]));
  return Object.fromEntries(entries);
}

function starts(counts) {
  const sums = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) sums[i + 1] = sums[i] + counts[i];
  return sums;
}

// The first index in [low, high) whose value is at least (above: more than) the one sought; high where there is none.
function lowerBound(values, low, high, sought) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < sought) low = middle + 1; else high = middle;
  }
  return low;
}
function upperBound(values, low, high, sought) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= sought) low = middle + 1; else high = middle;
  }
  return low;
}

function makeSchedule(raw, count) {
  const { order, engine, lane, gap, duration } = raw;
  const start = new Float64Array(count), end = new Float64Array(count);
  const startAt = new Float64Array(count), endAt = new Float64Array(count), busy = new Float64Array(count + 1);
  const rows = [];
  let before = 0, row = null;
  for (let i = 0; i < count; i++) {
    const from = before + gap[i], to = from + duration[i];
    startAt[i] = start[order[i]] = from;
    endAt[i] = end[order[i]] = to;
    busy[i + 1] = busy[i] + duration[i];
    before = to;
    if (engine[i] < 0) continue;
    if (row === null || row.engine !== engine[i] || row.lane !== lane[i]) {
      row = { engine: engine[i], lane: lane[i], from: i, to: i, about: raw.engines[engine[i]] };
      rows.push(row);
    }
    row.to = i + 1;
  }
  const position = new Int32Array(count); // by node its place in the order
  for (let i = 0; i < count; i++) position[order[i]] = i;
  const critical = new Uint8Array(count);
  for (const node of raw.chain) critical[node] = 1;
  return { ...raw, start, end, startAt, endAt, busy, rows, position, critical };
}

async function readModel() {
  const raw = await unpackAll(JSON.parse(document.getElementById("data").textContent));
  const count = raw.nodes.op.length;
  const model = { ...raw, ...raw.nodes, count };
  model.accessStart = starts(raw.accesses.count);
  model.edgeStart = raw.edges ? starts(raw.edges.count) : null;
  model.rankStart = new Int32Array(raw.ranks + 1);
  for (let rank = 0; rank < raw.ranks; rank++) model.rankStart[rank + 1] = upperBound(model.rank, 0, count, rank);
  model.schedules = raw.schedules.map((one) => makeSchedule(one, count));
  model.engineKind = engineKinds(model);
  model.isMarker = (node) => raw.marker.includes(model.op[node]);
  return model;
}

// By operation the kind of its engine, as any schedule has it; "none" where nothing of it is scheduled.
function engineKinds(model) {
  const kinds = new Array(model.operations.length).fill("none");
  for (const { order, engine, engines } of model.schedules.slice(0, 1)) {
    for (let i = 0; i < order.length; i++) if (engine[i] >= 0) kinds[model.op[order[i]]] = engines[engine[i]].kind;
  }
  return kinds;
}

// What a node is called where there is room: its operation, and the tensor in memory that it loads or stores.
function labelOf(model, node) {
  const op = model.operations[model.op[node]];
  for (let i = model.accessStart[node]; i < model.accessStart[node + 1]; i++) {
    const row = model.accesses.storage[i];
    if (model.storages.hbm[row]) return `${op} ${model.storages.names[model.storages.name[row]]}`.trimEnd();
  }
  return op;
}

// An estimate of how long each node may be late without the end being late, everything else staying in its order: back
// from the end over edges, what each waited for and the neighbours on a lane. Where a transfer overlaps its lane's next
// the gap counts as none; the order of issue counts only where it was waited for.
function slackOf(model, schedule) {
  if (schedule.slack || !model.edgeStart) return schedule.slack ?? null;
  const { count, edgeStart, edges } = model, { start, end, position, order, engine, lane } = schedule;
  const slack = new Float64Array(count);
  for (let node = 0; node < count; node++) slack[node] = Math.max(schedule.makespan - end[node], 0);
  const late = Uint32Array.from({ length: count }, (_, node) => node).sort((a, b) => start[b] - start[a] || b - a);
  for (const node of late) {
    for (let i = edgeStart[node]; i < edgeStart[node + 1]; i++) {
      const from = node - edges.back[i];
      slack[from] = Math.min(slack[from], slack[node] + Math.max(start[node] - end[from], 0));
    }
    const behind = schedule.behind[node] ? node - schedule.behind[node] : -1;
    if (behind >= 0 && start[node] >= end[behind]) slack[behind] = Math.min(slack[behind], slack[node] + start[node] - end[behind]);
    const at = position[node];
    if (at > 0 && engine[at] >= 0 && engine[at - 1] === engine[at] && lane[at - 1] === lane[at]) {
      const from = order[at - 1];
      slack[from] = Math.min(slack[from], slack[node] + Math.max(start[node] - end[from], 0));
    }
  }
  schedule.slack = slack;
  return slack;
}

// The nodes that have an edge from each: made once, when first asked for.
function successorsOf(model) {
  if (model.successors || !model.edgeStart) return model.successors ?? null;
  const { count, edgeStart, edges } = model, counts = new Int32Array(count);
  for (let node = 0; node < count; node++) {
    for (let i = edgeStart[node]; i < edgeStart[node + 1]; i++) counts[node - edges.back[i]]++;
  }
  const start = starts(counts), next = start.slice(), target = new Int32Array(edges.back.length), edge = new Int32Array(edges.back.length);
  for (let node = 0; node < count; node++) {
    for (let i = edgeStart[node]; i < edgeStart[node + 1]; i++) {
      const place = next[node - edges.back[i]]++;
      target[place] = node;
      edge[place] = i;
    }
  }
  return model.successors = { start, target, edge };
}

const UNITS = [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3], ["ps", 1]];
function time(ps) {
  if (ps === 0) return "0 ns";
  const [unit, size] = UNITS.find(([, one]) => Math.abs(ps) >= one) ?? UNITS[4];
  return `${Number((ps / size).toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 3 })} ${unit}`;
}
const SIZES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
function bytes(value) {
  const [unit, size] = SIZES.find(([, one]) => value >= one) ?? ["B", 1];
  return `${Number((value / size).toPrecision(4))} ${unit}`;
}
const percent = (part, whole) => (part > 0 && part < whole / 100 ? "<1 %" : `${Math.round(100 * part / Math.max(whole, 1))} %`);
const number = (value) => value.toLocaleString("en-US");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// Round instants of an axis, as in the Gantt charts.
function ticks(from, to, most) {
  let step = 1;
  while ((to - from) / step > most) {
    const factor = [2, 5, 10].find((one) => (to - from) / (step * one) <= most) ?? 10;
    step *= factor;
  }
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}
