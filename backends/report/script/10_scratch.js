// The scratch map of one rank: address by time of the schedule shown, or by program order; above it how much is held.

const CURVE = 22; // the height of that strip

class Scratch extends Picture {
  constructor(model, selection, timeline) {
    super("scratch-canvas");
    this.model = model;
    this.selection = selection;
    this.timeline = timeline;
    this.cursor = timeline && timeline.cursor;
    this.rank = model.peaks.reduce((best, one, rank) => (one.bytes > model.peaks[best].bytes ? rank : best), 0);
    this.byTime = model.schedules.length > 0;
    this.ordered = new View(1);
    this.ordered.listeners.push(() => this.redraw());
    if (timeline) timeline.view.listeners.push(() => this.redraw());
    this.findAccesses();
    this.layOut();
    control(this, () => this.view, (x, y) => this.pick(x, y), (x, y) => this.tell(x, y));
    this.listen("scratch-rank", (value) => { this.rank = Number(value); this.layOut(); });
    this.listen("scratch-axis", (value) => { this.byTime = value === "time"; this.layOut(); });
    const chooser = document.getElementById("scratch-rank");
    if (chooser) chooser.value = String(this.rank);
    selection.listeners.push(() => this.follow());
  }

  listen(id, act) {
    const chooser = document.getElementById(id);
    if (chooser) chooser.addEventListener("change", () => act(chooser.value));
  }

  get view() { return this.byTime ? this.timeline.view : this.ordered; }

  // By allocation: its accesses in program order.
  findAccesses() {
    const { accesses, accessStart, count, storages } = this.model;
    const counts = new Int32Array(storages.name.length);
    for (const row of accesses.storage) counts[row]++;
    this.start = starts(counts);
    this.accessing = new Int32Array(accesses.storage.length);
    const next = this.start.slice();
    for (let node = 0; node < count; node++) {
      for (let i = accessStart[node]; i < accessStart[node + 1]; i++) this.accessing[next[accesses.storage[i]]++] = node;
    }
  }

  // The rank's allocations, from left to right, with the range that each is held and used in.
  layOut() {
    const { model } = this, { storages: st, scopes } = model;
    const schedule = this.timeline ? this.timeline.schedule : null;
    const first = model.rankStart[this.rank], last = model.rankStart[this.rank + 1];
    this.ordered.whole = Math.max(last - first, 1);
    this.ordered.fit();
    const items = [];
    this.top = 16;
    for (let row = 0; row < st.name.length; row++) {
      if (st.hbm[row] || st.rank[row] !== this.rank) continue;
      const from = this.start[row], to = this.start[row + 1];
      if (this.byTime && from === to) continue;
      const spans = this.byTime ? this.timeSpans(row, schedule) : this.programSpans(row, first, last);
      items.push({ row, ...spans, low: st.address[row], high: st.address[row] + st.bytes[row] });
      this.top = Math.max(this.top, st.address[row] + st.bytes[row]);
    }
    this.items = items.sort((a, b) => a.held[0] - b.held[0] || a.row - b.row);
    this.longest = items.reduce((most, one) => Math.max(most, one.held[1] - one.held[0]), 0);
    // What is held for long would make every search begin at the left end: it is kept apart.
    const limit = this.view.whole / 50;
    this.long = this.items.filter((one) => one.held[1] - one.held[0] > limit);
    this.short = this.items.filter((one) => one.held[1] - one.held[0] <= limit);
    this.shortFrom = Float64Array.from(this.short, (one) => one.held[0]);
    this.scopes = this.findScopes(scopes, first);
    this.holders = new Set(model.peaks[this.rank].holders);
    this.curves = this.byTime ? [this.heldByTime()] : this.byProgram(first, last);
    this.redraw();
  }

  // From an allocation's first access to its last, and where in between nobody accesses it: pairs of instants.
  timeSpans(row, { start, end }) {
    const nodes = this.accessing.slice(this.start[row], this.start[row + 1]).sort((a, b) => start[a] - start[b]);
    const idle = [];
    let until = end[nodes[0]];
    for (const node of nodes) {
      if (start[node] > until) idle.push(until, start[node]);
      until = Math.max(until, end[node]);
    }
    const held = [start[nodes[0]], until];
    return { held, used: held, idle };
  }

  programSpans(row, first, last) {
    const { storages: st } = this.model, from = this.start[row], to = this.start[row + 1];
    return {
      held: [st.born[row] - first, (st.freed[row] >= 0 ? st.freed[row] : last) - first],
      used: from < to ? [this.accessing[from] - first, this.accessing[to - 1] + 1 - first] : null,
      idle: [],
    };
  }

  // How many bytes are held from each instant on: a stair.
  heldByTime() {
    const at = new Float64Array(2 * this.items.length), by = new Map();
    this.items.forEach(({ held, low, high }, i) => {
      for (const [k, change] of [[0, high - low], [1, low - high]]) {
        at[2 * i + k] = held[k];
        by.set(held[k], (by.get(held[k]) ?? 0) + change);
      }
    });
    const instants = Float64Array.from(new Set(at.sort()));
    let sum = 0;
    return { name: "held", instants, bytes: Float64Array.from(instants, (one) => (sum += by.get(one))) };
  }

  byProgram(first, last) {
    const { cursor, live } = this.model, instants = Float64Array.from({ length: last - first }, (_, at) => at);
    return [["held", cursor], ["live", live]].map(([name, column]) => ({ name, instants, bytes: column.subarray(first, last) }));
  }

  // The scopes with markers, each around its allocations and those of the scopes inside it.
  findScopes(scopes, first) {
    const around = new Map();
    const extend = (scope, held, low, high) => {
      const one = around.get(scope);
      if (!one) { around.set(scope, { scope, held: [...held], low, high }); return; }
      one.held = [Math.min(one.held[0], held[0]), Math.max(one.held[1], held[1])];
      one.low = Math.min(one.low, low);
      one.high = Math.max(one.high, high);
    };
    for (const item of this.items) extend(this.model.storages.scope[item.row], item.held, item.low, item.high);
    for (const scope of [...around.keys()].sort((a, b) => b - a)) {
      for (let row = scope; scopes.parent[row] >= 0; row = scopes.parent[row]) {
        const one = around.get(row);
        extend(scopes.parent[row], one.held, one.low, one.high);
      }
    }
    const found = [...around.values()].filter((one) => scopes.parent[one.scope] >= 0);
    if (!this.byTime) {
      for (const one of found) one.held = [scopes.enter[one.scope] - first, scopes.exit[one.scope] + 1 - first];
    }
    return found.sort((a, b) => a.scope - b.scope);
  }

  get head() { return (this.byTime ? 6 : 24) + CURVE + 4; }

  instant(x) { return this.view.from + (x - this.left) / this.plot * (this.view.to - this.view.from); }

  // The allocations of the part shown.
  *shown() {
    const { from, to } = this.view;
    for (const one of this.long) if (one.held[1] >= from && one.held[0] <= to) yield one;
    const limit = this.view.whole / 50;
    const first = lowerBound(this.shortFrom, 0, this.short.length, from - limit);
    for (let i = first; i < this.short.length && this.short[i].held[0] <= to; i++) {
      if (this.short[i].held[1] >= from) yield this.short[i];
    }
  }

  draw() {
    this.height = Math.max(this.canvas.parentElement.clientHeight, 140);
    this.begin(this.height);
    const { context: c, colours, view, model, left } = this;
    const right = left + this.plot, bottom = this.height - 6;
    const near = model.budget <= this.top * 1.7;
    this.up = (bottom - this.head - (near ? 12 : 34)) / (near ? Math.max(model.budget, this.top) : this.top);
    const y = (address) => bottom - address * this.up;
    const x = (at) => left + (at - view.from) / (view.to - view.from) * this.plot;
    const clamp = (at) => Math.min(Math.max(x(at), left), right);
    const first = model.rankStart[this.rank];
    for (const at of byteTicks(near ? Math.max(model.budget, this.top) : this.top, Math.max(2, this.height / 44))) {
      c.fillStyle = colours.line;
      c.fillRect(left, Math.round(y(at)), this.plot, 1);
      this.text(bytes(at), left - 8, y(at) + 4, colours.mute, "right");
    }
    this.axis(view.from, view.to, this.byTime ? 0 : 18, bottom, this.byTime ? null : (at) => `%${number(Math.round(at) + first)}`);
    const seen = new Map(); // of many in one pixel of one place one is drawn
    for (const one of this.shown()) {
      const from = clamp(one.held[0]), to = clamp(one.held[1]);
      if (to - from < 1) {
        const pixel = Math.floor(from);
        if (seen.get(one.low) === pixel) continue;
        seen.set(one.low, pixel);
      }
      const colour = this.colour(one.row), high = Math.max((one.high - one.low) * this.up - 0.7, 0.7);
      c.fillStyle = colour;
      if (!this.byTime) {
        c.globalAlpha = 0.28;
        c.fillRect(from, y(one.high), Math.max(to - from, 0.6), high);
        c.globalAlpha = 1;
      }
      if (one.used) {
        const begin = clamp(one.used[0]), end = clamp(one.used[1]);
        c.fillRect(begin, y(one.high), Math.max(end - begin - (end - begin > 3 ? 0.7 : 0), 0.6), high);
      }
      this.hatch(one, clamp, y(one.high), high);
      this.name(one, clamp(one.held[0]), clamp(one.held[1]), y(one.high), high);
    }
    this.drawCurves(x, right);
    this.drawScopes(x, y, right);
    this.drawPeak(x, y, right, near);
    this.drawMarked(clamp, y);
  }

  // The engine of who fills it.
  colour(row) {
    const { model } = this, filled = this.start[row] < this.start[row + 1];
    return model.colours[filled ? model.engine_kinds[model.op[this.accessing[this.start[row]]]] : "none"].solid;
  }

  // Hatched where it is held, but nobody accesses it.
  hatch(one, clamp, top, high) {
    const { context: c } = this;
    if (high < 3) return;
    for (let i = 0; i < one.idle.length; i += 2) {
      const from = clamp(one.idle[i]), to = clamp(one.idle[i + 1]);
      if (to - from < 4) continue;
      c.fillStyle = this.stripes();
      c.fillRect(from, top, to - from, high);
    }
  }

  // A pattern of slanted lines in the colour of the page.
  stripes() {
    if (this.striped?.card === this.colours.card) return this.striped.pattern;
    const tile = make("canvas", ""), c = tile.getContext("2d");
    tile.width = tile.height = 6;
    c.strokeStyle = this.colours.card;
    c.globalAlpha = 0.45;
    c.lineWidth = 1.6;
    c.beginPath();
    for (const shift of [-6, 0, 6]) { c.moveTo(shift - 1, 7); c.lineTo(shift + 7, -1); }
    c.stroke();
    this.striped = { card: this.colours.card, pattern: this.context.createPattern(tile, "repeat") };
    return this.striped.pattern;
  }

  // How much is held, and in program order how much of it is live, over the same axis as the map; the top is the budget,
  // or the peak where the budget is far above it.
  drawCurves(x, right) {
    const { context: c, colours, view, left, model } = this;
    const base = this.head - 4, most = model.peaks[this.rank].bytes;
    const top = model.budget <= this.top * 1.7 ? Math.max(model.budget, most) : most;
    if (!most) return;
    c.fillStyle = colours.soft;
    c.fillRect(left, base - CURVE, this.plot, CURVE);
    if (left > 100) this.text("held", left - 8, base - CURVE / 2 + 4, colours.mute, "right");
    this.curves.forEach((curve, which) => {
      c.fillStyle = colours.wait;
      c.globalAlpha = this.curves.length === 1 || which ? 0.75 : 0.35;
      this.stair(curve, (px, bytes) => c.fillRect(px, base - CURVE * bytes / top, 1, CURVE * bytes / top));
    });
    c.globalAlpha = 1;
  }

  // By pixel the most that a stair reaches in it.
  stair({ instants, bytes }, act) {
    const { view, plot, left } = this, step = (view.to - view.from) / plot;
    let at = upperBound(instants, 0, instants.length, view.from) - 1;
    for (let px = 0; px < plot; px++) {
      let most = at >= 0 ? bytes[at] : 0;
      const until = view.from + (px + 1) * step;
      while (at + 1 < instants.length && instants[at + 1] < until) most = Math.max(most, bytes[++at]);
      if (most) act(left + px, most);
    }
  }

  // Its name, else what fills it.
  name(one, from, to, top, high) {
    if (high < 12 || to - from < 12) return;
    const { storages } = this.model, given = storages.names[storages.name[one.row]];
    const words = given || this.filler(one.row), room = (to - from - 8) / 6.4;
    if (!words || words.length > room) return;
    const ink = this.byTime ? "#06141d" : this.colours.ink, c = this.context;
    if (one.idle.length) { // not over the hatching
      c.fillStyle = this.colour(one.row);
      c.fillRect(from + 2, top + Math.min(high / 2 + 4, 14) - 10, c.measureText(words).width + 4, 12);
    }
    if (!given) c.globalAlpha = 0.72;
    this.text(words, from + 4, top + Math.min(high / 2 + 4, 14), ink);
    c.globalAlpha = 1;
  }

  // What first accesses an allocation, and its line: `dot :97`; empty where nothing does.
  filler(row) {
    const { model } = this, node = this.accessing[this.start[row]];
    if (this.start[row] === this.start[row + 1]) return "";
    const place = model.stack[node] >= 0 ? model.places[model.stack[node]].replace(/^.*:/, " :") : "";
    return `${model.operations[model.op[node]]}${place}`;
  }

  drawScopes(x, y, right) {
    const { context: c, colours, model } = this;
    c.strokeStyle = colours.text;
    c.globalAlpha = 0.55;
    c.setLineDash([3, 2]);
    const written = new Map(); // where the last title at a height ends
    for (const one of this.scopes) {
      const from = x(one.held[0]), to = x(one.held[1]);
      if (to - from < 9 || to < this.left || from > right) continue;
      const left = Math.max(from, this.left - 2), end = Math.min(to, right + 2);
      c.strokeRect(left + 0.5, y(one.high) - 1.5, end - left - 1, (one.high - one.low) * this.up + 2);
      const title = model.scopes.titles[model.scopes.title[one.scope]];
      const length = title.length * 6.2 + 8, height = Math.round(y(one.high) / 12);
      if (end - left < length || [height - 1, height, height + 1].some((at) => (written.get(at) ?? 0) > left)) continue;
      c.globalAlpha = 1;
      this.text(title, left + 3, y(one.high) - 4, colours.mute);
      c.globalAlpha = 0.55;
      written.set(height, left + length);
    }
    c.globalAlpha = 1;
    c.setLineDash([]);
  }

  drawPeak(x, y, right, near) {
    const { context: c, colours, model, left } = this;
    const peak = model.peaks[this.rank];
    if (near) {
      c.fillStyle = colours.bad;
      c.globalAlpha = 0.06;
      c.fillRect(left, this.head - 4, this.plot, Math.max(y(model.budget) - this.head + 4, 0));
      c.globalAlpha = 1;
      c.strokeStyle = colours.bad;
      c.setLineDash([7, 4]);
      c.strokeRect(left, y(model.budget), this.plot, 0.01);
      c.setLineDash([]);
      this.tag(`budget ${bytes(model.budget)}`, right - 4, y(model.budget) + 13, colours.bad, "right");
    } else this.tag(`\u2191 budget ${bytes(model.budget)}`, right - 4, this.head + 11, colours.mute, "right");
    if (peak.node < 0) return;
    const at = this.byTime ? this.timeline.schedule.start[peak.node] : peak.node - model.rankStart[this.rank];
    const px = x(at);
    if (px < left || px > right) return;
    c.fillStyle = colours.ink;
    const above = Math.max(y(peak.bytes) - 28, 2);
    c.fillRect(px - 0.5, above, 1.5, y(0) - above);
    const flip = px > right - 220;
    this.tag(`peak ${number(peak.bytes)} B, %${peak.node}`, flip ? px - 5 : px + 5, y(peak.bytes) - 18, colours.ink, flip ? "right" : "left");
  }

  // Words on a piece of the page's own colour, so that they can be read over rectangles.
  tag(words, x, y, colour, align) {
    const { context: c, colours } = this, wide = c.measureText(words).width + 6;
    const at = Math.max(y, 12);
    c.globalAlpha = 0.85;
    c.fillStyle = colours.card;
    c.fillRect(align === "right" ? x - wide + 3 : x - 3, at - 10, wide, 14);
    c.globalAlpha = 1;
    this.text(words, x, at, colour, align);
  }

  drawMarked(clamp, y) {
    const { context: c, colours, selection } = this;
    if (selection.storages.size === 0) return;
    for (const one of this.shown()) {
      if (!selection.storages.has(one.row)) continue;
      const from = clamp(one.held[0]), to = clamp(one.held[1]);
      for (const [colour, thick] of [[colours.card, 4.5], [colours.mark, 2.2]]) {
        c.strokeStyle = colour;
        c.lineWidth = thick;
        c.strokeRect(from - 1, y(one.high) - 1, Math.max(to - from, 3) + 2, (one.high - one.low) * this.up + 2);
      }
    }
    c.lineWidth = 1;
  }

  follow() {
    const { model, selection } = this;
    if (selection.node >= 0 && model.rank[selection.node] !== this.rank) {
      this.rank = model.rank[selection.node];
      const chooser = document.getElementById("scratch-rank");
      if (chooser) chooser.value = String(this.rank);
      this.layOut();
    }
    if (!this.byTime && selection.node >= 0) {
      const at = selection.node - model.rankStart[this.rank];
      this.ordered.see(at, at + 1);
    }
    this.redraw();
  }

  at(x, y) {
    if (x < this.left || x > this.left + this.plot) return null;
    const instant = this.instant(x), address = (this.height - 6 - y) / this.up;
    let found = null;
    for (const one of this.shown()) {
      if (one.low <= address && address < one.high && one.held[0] <= instant && instant <= one.held[1]) found = one;
    }
    return found;
  }

  // Selecting an allocation selects the nodes that access it.
  pick(x, y) {
    const one = this.at(x, y);
    if (!one) { this.selection.clear(); return; }
    const nodes = Int32Array.from(new Set(this.accessing.subarray(this.start[one.row], this.start[one.row + 1])));
    this.selection.set(nodes, `accessing ${this.title(one.row)}`);
  }

  title(row) {
    const { storages } = this.model, filler = this.filler(row);
    return storages.names[storages.name[row]] || (filler ? `#${row}, of ${filler}` : `#${row}`);
  }

  tell(x, y) {
    const one = this.at(x, y);
    if (!one) return "";
    const { storages: st, places } = this.model;
    const place = st.stack[one.row] >= 0 ? `  ${places[st.stack[one.row]]}` : "";
    const lines = [`${this.title(one.row)} ${this.model.layouts[st.layout[one.row]]}${place}`];
    lines.push(`0x${one.low.toString(16)}, ${number(one.high - one.low)} B` + (this.holders.has(one.row) ? ", held at the peak" : ""));
    const many = this.start[one.row + 1] - this.start[one.row];
    let idle = 0;
    for (let i = 0; i < one.idle.length; i += 2) idle += one.idle[i + 1] - one.idle[i];
    lines.push(many ? `${number(many)} access${many === 1 ? "" : "es"}` : "never accessed");
    if (idle) lines.push(`${time(one.held[1] - one.held[0])} held, ${time(idle)} of it idle`);
    return lines.join("\n");
  }

  // Where an allocation is on the page, for programs that click; null where it is not shown.
  place(row) {
    for (const one of this.shown()) {
      if (one.row !== row) continue;
      const box = this.canvas.getBoundingClientRect(), { from, to } = this.view;
      const middle = (Math.max(one.held[0], from) + Math.min(one.held[1], to)) / 2;
      return {
        x: box.left + this.left + (middle - from) / (to - from) * this.plot,
        y: box.top + this.height - 6 - (one.low + one.high) / 2 * this.up,
      };
    }
    return null;
  }
}
