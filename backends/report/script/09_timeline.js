// The timeline: engines as rows, drawn on a canvas. What is narrower than a pixel is drawn as how busy the pixel is.

const HEAD = 16, THIN = 4, SHADES = 12;

// By rank the first rank that does the same at the same times, operation by operation.
function alikeRanks(model, schedule) {
  if (schedule.alike) return schedule.alike;
  const { rows, startAt, endAt, order } = schedule, byRank = Array.from({ length: model.ranks }, () => []);
  for (const row of rows) byRank[row.about.rank].push(row);
  const same = (one, other) => {
    if (one.about.name !== other.about.name || one.lane !== other.lane || one.to - one.from !== other.to - other.from) return false;
    for (let i = one.from, j = other.from; i < one.to; i++, j++) {
      if (startAt[i] !== startAt[j] || endAt[i] !== endAt[j] || model.op[order[i]] !== model.op[order[j]]) return false;
    }
    return true;
  };
  const equal = (a, b) => a.length > 0 && a.length === b.length && a.every((row, at) => same(row, b[at]));
  schedule.alike = byRank.map((mine, rank) => {
    const first = byRank.findIndex((other) => equal(other, mine));
    return first < 0 ? rank : first;
  });
  return schedule.alike;
}

// The axis above the timeline and the scratch map, with the part shown of the whole.
class Axis extends Picture {
  constructor(timeline) {
    super("axis-canvas");
    this.timeline = timeline;
    this.redraw();
  }

  draw() {
    this.begin(22);
    const { context: c, colours, timeline: { view } } = this;
    this.axis(view.from, view.to, 17, 22, time, 13);
    if (!view.all) {
      const scale = this.plot / Math.max(view.until, view.to);
      c.fillStyle = colours.line;
      c.fillRect(this.left, 0, this.plot, 3);
      c.fillStyle = colours.accent;
      c.fillRect(this.left + view.from * scale, 0, Math.max((view.to - view.from) * scale, 3), 3);
    }
    if (this.left > 100) this.text("busy", this.left - 8, 13, colours.mute, "right");
  }
}

class Timeline extends Picture {
  constructor(model, selection) {
    super("timeline-canvas");
    this.model = model;
    this.selection = selection;
    this.schedule = model.schedules[0];
    this.axisAbove = new Axis(this);
    this.view = new View(Math.max(...model.schedules.map((one) => Math.max(one.makespan, one.bound)), 1));
    this.view.listeners.push(() => this.redraw(), () => this.axisAbove.redraw(), () => this.cursor.follow());
    this.positions = { critical: [], marked: [], hinted: null };
    this.cursor = new Cursor(this);
    this.open = new Set(model.ranks <= 2 ? [0, 1] : []);
    this.layOut();
    this.view.fit();
    control(this, () => this.view, (x, y) => this.pick(x, y), (x, y) => this.tell(x, y));
    selection.listeners.push(() => {
      const { node } = selection;
      if (node >= 0) this.reveal(model.rank[node]);
      this.positions.marked = this.find(selection.nodes); // of the rows, which a rank that is opened may have changed
      if (node >= 0) this.view.see(this.schedule.start[node], this.schedule.end[node]);
      if (node >= 0) this.scrollTo(node);
      this.redraw();
    });
    this.redraw();
  }

  // Another schedule, from its beginning to its end where all was shown before.
  show(schedule) {
    const { all } = this.view;
    this.schedule = schedule;
    this.layOut();
    this.cursor.clear();
    this.selection.changed(false);
    if (all) this.view.fit(); else this.redraw();
    this.axisAbove.redraw();
  }

  // The rows' places, and where on them the critical chain lies. Of many ranks those not opened have thin rows; of ranks
  // that do the same at the same time the first stands for those that are not opened and not on the critical chain.
  layOut() {
    const { schedule, model } = this, alike = alikeRanks(model, schedule);
    this.view.until = Math.max(schedule.makespan, schedule.bound) * 1.01;
    const critical = new Set(Array.from(schedule.chain, (node) => model.rank[node]));
    const hidden = (rank) => alike[rank] !== rank && !this.open.has(rank) && !critical.has(rank);
    this.rows = schedule.rows.filter((row) => !hidden(row.about.rank));
    let y = 3, rank = -1;
    const high = (this.rows.length <= 6 ? 21 : 17) + (innerWidth >= 1900 ? 3 : 0), thin = this.rows.length > 30 ? 2 : THIN;
    this.heads = [];
    for (const row of this.rows) {
      const wide = model.ranks <= 1 || this.open.has(row.about.rank);
      if (row.about.rank !== rank) {
        rank = row.about.rank;
        if (model.ranks > 1) {
          if (this.heads.length) { y = Math.max(y + 3, this.heads.at(-1).y + HEAD); }
          this.heads.push({ rank, y, wide, title: this.titleOf(rank, alike, hidden) });
          if (wide) y += HEAD;
        }
      }
      row.h = wide ? high : thin;
      row.y = y;
      y += row.h + (wide ? 2 : 1);
    }
    this.height = Math.max(y, this.heads.length ? this.heads.at(-1).y + HEAD : 0) + 4;
    this.canvas.style.height = `${this.height}px`;
    this.positions.critical = this.find(this.schedule.chain);
    this.positions.marked = this.find(this.selection.nodes);
  }

  titleOf(rank, alike, hidden) {
    const others = alike.filter((first, other) => first === rank && other !== rank && hidden(other)).length;
    return others ? `rank ${rank} and ${plural(others, "rank")} like it` : `rank ${rank}`;
  }

  // Open a rank, instead of the one that was opened so before.
  reveal(rank) {
    if (this.open.has(rank)) return;
    if (this.revealed !== undefined) this.open.delete(this.revealed);
    this.open.add(this.revealed = rank);
    this.layOut();
  }

  scrollTo(node) {
    const row = this.rowOf(node), box = this.canvas.parentElement;
    if (row && (row.y < box.scrollTop || row.y + row.h > box.scrollTop + box.clientHeight)) box.scrollTop = row.y - box.clientHeight / 3;
  }

  rowOf(node) {
    const at = this.schedule.position[node];
    return this.rows.find((row) => row.from <= at && at < row.to);
  }

  // By row the places of some nodes in the schedule's order, ascending.
  find(nodes) {
    const { position } = this.schedule;
    const places = Int32Array.from(nodes, (node) => position[node]).sort();
    return this.rows.map((row) => {
      const from = lowerBound(places, 0, places.length, row.from);
      return places.subarray(from, lowerBound(places, from, places.length, row.to));
    });
  }

  // How long a row is busy between two instants.
  busyIn(row, from, to) {
    const { schedule } = this;
    const before = (at) => {
      const i = upperBound(schedule.startAt, row.from, row.to, at) - 1;
      return i < row.from ? 0 : schedule.busy[i] - schedule.busy[row.from] + Math.min(at, schedule.endAt[i]) - schedule.startAt[i];
    };
    return before(to) - before(from);
  }

  instant(x) { return this.view.from + (x - this.left) / this.plot * (this.view.to - this.view.from); }

  draw() {
    this.begin(this.height);
    const { context: c, colours, schedule, view, left } = this;
    const right = left + this.plot, scale = this.plot / (view.to - view.from);
    const until = Math.min(view.to, schedule.makespan);
    for (const { title, y, wide } of this.heads) {
      this.text(wide ? "\u25be" : "\u25b8", 4, y + 12, colours.mute);
      this.text(title, 16, y + 12, colours.ink);
    }
    for (const row of this.rows) {
      c.fillStyle = colours.soft;
      c.fillRect(left, row.y, this.plot, row.h);
      if (row.h > THIN) {
        const lane = row.about.lanes > 1 ? ` ${row.lane}` : "", base = row.y + row.h / 2 + 4;
        const share = left > 100 && until > view.from ? percent(this.busyIn(row, view.from, until), until - view.from) : "";
        this.text(share, left - 8, base, colours.mute, "right");
        this.text(row.about.name + lane, left - (left > 100 ? 44 : 6), base, colours.text, "right");
      }
    }
    this.axis(view.from, view.to, 0, this.height);
    this.rows.forEach((row, index) => {
      this.drawRow(row, scale, right);
      const high = row.h > THIN ? 3 : 1;
      this.drawStrips(row, this.positions.critical[index], scale, right, colours.ink, row.y + row.h - high, high);
      this.drawMarked(row, this.positions.marked[index], scale, right);
      if (this.positions.hinted) this.drawStrips(row, this.positions.hinted[index], scale, right, colours.mark, row.y - 1, row.h > THIN ? 3 : 1);
    });
    for (const [at, colour, dash] of [[schedule.makespan, colours.ink, []], [schedule.bound, colours.ink, [4, 3]]]) {
      if (at < view.from || at > view.to) continue;
      c.strokeStyle = colour;
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(left + (at - view.from) * scale, 0);
      c.lineTo(left + (at - view.from) * scale, this.height);
      c.stroke();
      c.setLineDash([]);
    }
    const shown = document.getElementById("timeline-shown");
    shown.textContent = view.all ? `${schedule.policy}, all ${time(schedule.makespan)}` : `${schedule.policy}, ${time(Math.round(view.from))} to ${time(Math.round(view.to))}`;
  }

  drawRow(row, scale, right) {
    const { context: c, schedule, view, model, left } = this;
    const colour = model.colours[row.about.kind];
    const first = upperBound(schedule.endAt, row.from, row.to, view.from);
    const last = lowerBound(schedule.startAt, first, row.to, view.to);
    c.fillStyle = colour.solid;
    if (last - first > this.plot) return this.drawBusy(row, first, last, scale);
    const letter = this.big ? 6.9 : 6.3;
    for (let i = first; i < last; i++) {
      const x = Math.max(left + (schedule.startAt[i] - view.from) * scale, left);
      const end = Math.min(left + (schedule.endAt[i] - view.from) * scale, right);
      if (end <= x && schedule.endAt[i] <= schedule.startAt[i]) continue;
      const wide = end - x;
      c.fillStyle = colour.solid;
      c.fillRect(x, row.y, Math.max(wide > 3 ? wide - 0.8 : wide, 0.4), row.h);
      if (row.h <= THIN || wide < 11) continue;
      const node = schedule.order[i], room = (wide - 4) / letter;
      const label = labelOf(model, node), short = model.operations[model.op[node]];
      const words = label.length <= room ? label : label !== short && label.length - short.length - 1 <= room ? label.slice(short.length + 1) : short.length <= room ? short : "";
      if (words) this.text(words, x + 3, row.y + row.h / 2 + 3.5, colour.ink);
    }
  }

  // More slices than pixels: each pixel as dark as the lane is busy in it.
  drawBusy(row, first, last, scale) {
    const { context: c, schedule, view } = this;
    const before = (at, low) => { // busy time of the lane up to an instant
      const i = upperBound(schedule.startAt, low, last, at) - 1;
      if (i < first) return [0, first];
      return [schedule.busy[i] - schedule.busy[first] + Math.min(at, schedule.endAt[i]) - schedule.startAt[i], i];
    };
    const fill = (from, to, shade) => {
      if (shade === 0) return;
      c.globalAlpha = 0.3 + 0.7 * shade / SHADES;
      c.fillRect(this.left + from, row.y, to - from, row.h);
    };
    let [done, low] = before(view.from, first);
    let since = 0, shade = 0; // pixels of one shade are drawn at once
    for (let px = 0; px < this.plot; px++) {
      const [sum, i] = before(view.from + (px + 1) / scale, low);
      const here = Math.ceil(Math.min((sum - done) * scale, 1) * SHADES - 1e-9);
      if (here !== shade) {
        fill(since, px, shade);
        [since, shade] = [px, here];
      }
      [done, low] = [sum, i];
    }
    fill(since, this.plot, shade);
    c.globalAlpha = 1;
  }

  // The visible ones of some places, merged where they are closer than a pixel: calls back with x and width.
  visible(places, scale, right, act) {
    const { schedule, view } = this, [first, last] = this.inView(places);
    let from = -1, to = -1;
    for (let k = first; k < last; k++) {
      const x = Math.max(this.left + (schedule.startAt[places[k]] - view.from) * scale, this.left);
      const end = Math.min(Math.max(this.left + (schedule.endAt[places[k]] - view.from) * scale, x + 1), right);
      if (from >= 0 && x <= to + 0.5) { to = Math.max(to, end); continue; }
      if (from >= 0) act(from, to - from);
      [from, to] = [x, end];
    }
    if (from >= 0) act(from, to - from);
  }

  // A strip under or over some places; where they are crowded, as dark as they fill each pixel.
  drawStrips(row, places, scale, right, colour, y, height) {
    const { context: c } = this;
    c.fillStyle = colour;
    if (this.crowded(places)) this.drawDensity(places, scale, y, height);
    else this.visible(places, scale, right, (x, width) => c.fillRect(x, y, width, height));
  }

  // The places in view, as a range of their list.
  inView(places) {
    const { schedule, view } = this;
    const first = firstWhere(places.length, (k) => schedule.endAt[places[k]] >= view.from);
    return [first, firstWhere(places.length, (k) => schedule.startAt[places[k]] > view.to)];
  }

  // Whether they are too many to be told from each other: one by one each takes a pixel, and the space around it.
  crowded(places) {
    const [first, last] = this.inView(places);
    return last - first > this.plot / 4;
  }

  drawDensity(places, scale, y, height) {
    const { context: c, schedule, view, left } = this;
    const filled = new Float64Array(Math.ceil(this.plot) + 1); // by pixel how much of it is covered
    const [first, last] = this.inView(places);
    for (let k = first; k < last; k++) {
      const from = Math.max((schedule.startAt[places[k]] - view.from) * scale, 0);
      const to = Math.min((schedule.endAt[places[k]] - view.from) * scale, this.plot);
      for (let px = Math.floor(from); px < to; px++) filled[px] += Math.min(to, px + 1) - Math.max(from, px);
    }
    for (let px = 0; px < this.plot; px++) {
      if (!filled[px]) continue;
      c.globalAlpha = 0.15 + 0.85 * Math.ceil(Math.min(filled[px], 1) * SHADES) / SHADES;
      c.fillRect(left + px, y, 1, height);
    }
    c.globalAlpha = 1;
  }

  drawMarked(row, places, scale, right) {
    const { context: c, colours, schedule, selection, view } = this;
    c.fillStyle = colours.mark;
    const high = row.h > THIN ? 4 : 2;
    if (this.crowded(places)) this.drawDensity(places, scale, row.y - 1, high);
    else {
      if (row.h <= THIN) c.globalAlpha = 0.7;
      this.visible(places, scale, right, (x, width) => c.fillRect(x - 0.5, row.y - 1, Math.max(width, 2) + 1, high));
      c.globalAlpha = 1;
    }
    const node = selection.node;
    if (node < 0 || schedule.position[node] < row.from || schedule.position[node] >= row.to) return;
    const x = this.left + (schedule.start[node] - view.from) * scale, end = this.left + (schedule.end[node] - view.from) * scale;
    if (end < this.left || x > right) return;
    const from = Math.max(x - 2, this.left - 2), to = Math.min(Math.max(end + 2, x + 4), right + 2);
    for (const [colour, thick] of [[colours.card, 4.5], [colours.mark, 2.2]]) { // with a halo: told from its surroundings in any colours
      c.strokeStyle = colour;
      c.lineWidth = thick;
      c.strokeRect(from, row.y - 2, to - from, row.h + 4);
    }
    c.lineWidth = 1;
  }

  // The node at a place: the one there, else the nearest within three pixels.
  at(x, y) {
    const { schedule } = this;
    const row = this.rows.find((one) => y >= one.y - 1 && y < one.y + one.h + 1);
    if (!row || x < this.left || x > this.left + this.plot) return -1;
    const at = this.instant(x), near = 3 * (this.view.to - this.view.from) / this.plot;
    const i = upperBound(schedule.startAt, row.from, row.to, at) - 1;
    const distances = [i, i + 1].filter((k) => k >= row.from && k < row.to).map((k) => {
      const inside = at >= schedule.startAt[k] && at < schedule.endAt[k];
      return [inside ? 0 : Math.min(Math.abs(at - schedule.startAt[k]), Math.abs(at - schedule.endAt[k])), k];
    }).sort((a, b) => a[0] - b[0]);
    return distances.length && distances[0][0] <= near ? schedule.order[distances[0][1]] : -1;
  }

  pick(x, y) {
    const head = x < this.left ? this.heads.findLast((one) => y >= one.y - 2) : null;
    if (head) {
      if (!this.open.delete(head.rank)) this.open.add(head.rank);
      if (this.revealed === head.rank) this.revealed = undefined;
      this.layOut();
      this.redraw();
      return;
    }
    const node = this.at(x, y);
    if (node >= 0) this.selection.select(node); else this.selection.clear();
  }

  // Where nodes are that are pointed at elsewhere; null: none are.
  hint(nodes) {
    if (!nodes && !this.positions.hinted) return;
    this.positions.hinted = nodes && this.find(nodes);
    this.redraw();
  }

  tell(x, y) {
    const node = this.at(x, y);
    this.pointed?.(node);
    if (node < 0) return "";
    const { model, schedule } = this;
    const place = model.stack[node] >= 0 ? `  ${model.places[model.stack[node]]}` : "";
    const took = time(schedule.end[node] - schedule.start[node]);
    return `%${node} ${labelOf(model, node)}${place}\n${took}, from ${time(schedule.start[node])}`;
  }

  zoomTo(node) {
    const from = this.schedule.start[node], span = Math.max(this.schedule.end[node] - from, 1);
    this.reveal(this.model.rank[node]);
    this.scrollTo(node);
    this.view.set(from - 6 * span, from + 7 * span);
  }

  // Where a node is on the page, for programs that click: client coordinates of its slice's middle.
  place(node) {
    const { schedule, view } = this;
    const row = this.rowOf(node);
    if (!row) return null;
    const box = this.canvas.getBoundingClientRect();
    const middle = (Math.max(schedule.start[node], view.from) + Math.min(schedule.end[node], view.to)) / 2;
    const x = this.left + (middle - view.from) / (view.to - view.from) * this.plot;
    return { x: box.left + x, y: box.top + row.y + row.h / 2 };
  }
}
