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
  model.isMarker = (node) => raw.marker.includes(model.op[node]);
  return model;
}

const UNITS = [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3], ["ps", 1]];
function time(ps) {
  if (ps === 0) return "0 ns";
  const [unit, size] = UNITS.find(([, one]) => Math.abs(ps) >= one) ?? UNITS[4];
  return `${Number((ps / size).toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 3 })} ${unit}`;
}
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
