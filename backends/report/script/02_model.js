// The page's data: the graph, and each schedule with its rows (an engine's lanes).

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
  model.lineOf = (node) => (model.stack[node] >= 0 ? model.lines[model.stack[node]][0] ?? -1 : -1); // the innermost line
  return model;
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
