// The timeline: engines as rows, drawn on a canvas. What is narrower than a pixel is drawn as how busy the pixel is.

// Colours of the page, read anew when the theme changes.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["card", "line", "soft", "ink", "text", "mute", "accent", "bad", "mark"].map((n) => [n, named(n)]));
}

const FONT = '11px system-ui, "Segoe UI", Helvetica, Arial, sans-serif';

// A canvas that is redrawn when it, the theme or what it shows changes.
class Picture {
  constructor(id) {
    this.canvas = document.getElementById(id);
    this.context = this.canvas.getContext("2d");
    this.waiting = false;
    new ResizeObserver(() => this.redraw()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    addEventListener("beforeprint", () => this.draw());
    addEventListener("afterprint", () => this.redraw());
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  // A clean sheet of the height wanted; returns the width, in CSS pixels.
  begin(height) {
    const scale = devicePixelRatio || 1, width = Math.max(this.canvas.parentElement.clientWidth, 320);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.font = FONT;
    this.colours = palette();
    return width;
  }

  text(words, x, y, colour, align = "left") {
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.fillText(words, x, y);
  }

  axis(from, to, left, right, bottom, say) {
    const scale = (right - left) / (to - from);
    for (const at of ticks(from, to, Math.max(2, Math.floor((right - left) / 110)))) {
      const x = left + (at - from) * scale;
      this.context.fillStyle = this.colours.line;
      this.context.fillRect(x, 20, 1, bottom - 20);
      this.text(say(at), Math.min(Math.max(x, left + 2), right - 2), 13, this.colours.mute, x > right - 50 ? "right" : x < left + 50 ? "left" : "center");
    }
  }
}

// The part of the time (or of the program) that is shown; shared by the pictures that show the same.
class View {
  constructor(whole) {
    this.whole = whole;
    [this.from, this.to] = [0, whole];
    this.listeners = [];
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(10, this.whole)), this.whole);
    const start = Math.min(Math.max((from + to - span) / 2, 0), this.whole - span);
    [this.from, this.to] = [start, start + span];
    for (const listener of this.listeners) listener();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    const start = Math.min(Math.max(this.from + by, 0), this.whole - (this.to - this.from));
    this.set(start, start + this.to - this.from);
  }

  // `until`: where what is shown ends; the whole may be longer, for the other policies.
  fit() { this.set(0, Math.min(this.until ?? this.whole, this.whole)); }

  see(from, to) {
    if (to >= this.from && from <= this.to) return;
    const half = (this.to - this.from) / 2, middle = (from + to) / 2;
    this.set(middle - half, middle + half);
  }
}

// Wheel with Ctrl, dragging, double click and keys on a picture move its view; a click selects, a pointer asks.
function control(picture, view, pick, ask) {
  const { canvas } = picture;
  const tip = document.getElementById("tip");
  let drag = null;
  const at = (event) => [event.clientX - canvas.getBoundingClientRect().left, event.clientY - canvas.getBoundingClientRect().top];
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) view().pan((event.deltaY || event.deltaX) / 800);
    else view().zoom(Math.exp(event.deltaY / 400), picture.instant(at(event)[0]));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const by = event.clientX - drag.x;
      if (drag.moved || Math.abs(by) > 4) {
        drag = { x: event.clientX, moved: true };
        view().pan(-by / picture.plot);
      }
      return;
    }
    const told = ask(...at(event));
    tip.hidden = !told;
    if (!told) return;
    tip.textContent = told;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) pick(...at(event));
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => view().zoom(0.25, picture.instant(at(event)[0])));
  canvas.addEventListener("keydown", (event) => {
    const acts = {
      "+": () => view().zoom(0.5), "=": () => view().zoom(0.5), "-": () => view().zoom(2), "0": () => view().fit(),
      Home: () => view().fit(), ArrowLeft: () => view().pan(-0.2), ArrowRight: () => view().pan(0.2),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[event.key]();
  });
}

const LEFT = 124, HEAD = 18, AXIS = 24, SHADES = 12;

class Timeline extends Picture {
  constructor(model, selection) {
    super("timeline-canvas");
    this.model = model;
    this.selection = selection;
    this.schedule = model.schedules[0];
    this.view = new View(Math.max(...model.schedules.map((one) => Math.max(one.makespan, one.bound)), 1));
    this.view.listeners.push(() => this.redraw());
    this.positions = { critical: [], marked: [] };
    this.layOut();
    this.view.fit();
    control(this, () => this.view, (x, y) => this.pick(x, y), (x, y) => this.tell(x, y));
    const chooser = document.getElementById("timeline-policy");
    chooser.addEventListener("change", () => this.show(Number(chooser.value)));
    selection.listeners.push(() => {
      this.positions.marked = this.find(selection.nodes);
      if (selection.node >= 0) this.view.see(this.schedule.start[selection.node], this.schedule.end[selection.node]);
      this.redraw();
    });
    this.redraw();
  }

  show(index) {
    const whole = this.view.from === 0 && this.view.to >= this.view.until - 1;
    this.schedule = this.model.schedules[index];
    this.layOut();
    this.selection.changed(false);
    if (whole) this.view.fit(); else this.redraw();
  }

  // The rows' places, and where on them the critical chain lies.
  layOut() {
    const { rows } = this.schedule;
    this.view.until = Math.max(this.schedule.makespan, this.schedule.bound) * 1.01;
    this.lane = rows.length > 80 ? 9 : rows.length > 40 ? 12 : 17;
    let y = AXIS, rank = -1;
    this.heads = [];
    for (const row of rows) {
      if (row.about.rank !== rank) {
        rank = row.about.rank;
        if (this.model.ranks > 1) { this.heads.push([rank, y + 13]); y += HEAD; }
      }
      row.y = y;
      y += this.lane + (this.lane > 9 ? 2 : 1);
    }
    this.height = y + 6;
    this.positions.critical = this.find(this.schedule.chain);
    this.positions.marked = this.find(this.selection.nodes);
  }

  // By row the places of some nodes in the schedule's order, ascending.
  find(nodes) {
    const { position, rows } = this.schedule;
    const places = Int32Array.from(nodes, (node) => position[node]).sort();
    return rows.map((row) => {
      const from = lowerBound(places, 0, places.length, row.from);
      return places.subarray(from, lowerBound(places, from, places.length, row.to));
    });
  }

  instant(x) { return this.view.from + (x - LEFT) / this.plot * (this.view.to - this.view.from); }

  draw() {
    const width = this.begin(this.height), { context: c, colours, schedule, view } = this;
    this.plot = width - LEFT - 10;
    const right = LEFT + this.plot, scale = this.plot / (view.to - view.from);
    this.axis(view.from, view.to, LEFT, right, this.height - 4, time);
    for (const [rank, y] of this.heads) this.text(`rank ${rank}`, 4, y, colours.ink);
    schedule.rows.forEach((row, index) => {
      if (this.lane >= 12 || row.lane === 0) {
        const lane = row.about.lanes > 1 ? ` ${row.lane}` : "";
        this.text(row.about.name + lane, LEFT - 8, row.y + this.lane - 4, colours.text, "right");
      }
      c.fillStyle = colours.soft;
      c.fillRect(LEFT, row.y, this.plot, this.lane);
      this.drawRow(row, scale, right);
      this.drawStrips(row, this.positions.critical[index], scale, right, colours.ink, row.y + this.lane - 3, 3);
      this.drawMarked(row, this.positions.marked[index], scale, right);
    });
    for (const [at, colour, dash] of [[schedule.makespan, colours.ink, []], [schedule.bound, colours.mute, [4, 3]]]) {
      if (at < view.from || at > view.to) continue;
      c.strokeStyle = colour;
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(LEFT + (at - view.from) * scale, 20);
      c.lineTo(LEFT + (at - view.from) * scale, this.height - 4);
      c.stroke();
      c.setLineDash([]);
    }
    const shown = document.getElementById("timeline-shown");
    shown.textContent = `${time(view.from)} to ${time(view.to)}`;
  }

  drawRow(row, scale, right) {
    const { context: c, schedule, view, model } = this;
    const colour = model.colours[row.about.kind];
    const first = upperBound(schedule.endAt, row.from, row.to, view.from);
    const last = lowerBound(schedule.startAt, first, row.to, view.to);
    c.fillStyle = colour.solid;
    if (last - first > this.plot) return this.drawBusy(row, first, last, scale);
    for (let i = first; i < last; i++) {
      const x = Math.max(LEFT + (schedule.startAt[i] - view.from) * scale, LEFT);
      const end = Math.min(LEFT + (schedule.endAt[i] - view.from) * scale, right);
      if (end <= x && schedule.endAt[i] <= schedule.startAt[i]) continue;
      const wide = end - x;
      c.fillStyle = colour.solid;
      c.fillRect(x, row.y, Math.max(wide > 3 ? wide - 0.6 : wide, 0.4), this.lane);
      const name = model.operations[model.op[schedule.order[i]]];
      if (this.lane >= 12 && wide > name.length * 6.4 + 8) this.text(name, x + 4, row.y + this.lane - 5, colour.ink);
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
      c.fillRect(LEFT + from, row.y, to - from, this.lane);
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
    const { schedule, view } = this;
    let low = 0, high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (schedule.endAt[places[middle]] < view.from) low = middle + 1; else high = middle;
    }
    let from = -1, to = -1;
    for (let k = low; k < places.length && schedule.startAt[places[k]] <= view.to; k++) {
      const x = Math.max(LEFT + (schedule.startAt[places[k]] - view.from) * scale, LEFT);
      const end = Math.min(Math.max(LEFT + (schedule.endAt[places[k]] - view.from) * scale, x + 1), right);
      if (from >= 0 && x <= to + 0.5) { to = Math.max(to, end); continue; }
      if (from >= 0) act(from, to - from);
      [from, to] = [x, end];
    }
    if (from >= 0) act(from, to - from);
  }

  drawStrips(row, places, scale, right, colour, y, height) {
    this.context.fillStyle = colour;
    this.visible(places, scale, right, (x, width) => this.context.fillRect(x, y, width, height));
  }

  drawMarked(row, places, scale, right) {
    const { context: c, colours, schedule, selection, view } = this;
    c.fillStyle = colours.mark;
    this.visible(places, scale, right, (x, width) => c.fillRect(x - 0.5, row.y - 1, Math.max(width, 2) + 1, 4));
    const node = selection.node;
    if (node < 0 || schedule.position[node] < row.from || schedule.position[node] >= row.to) return;
    const x = LEFT + (schedule.start[node] - view.from) * scale, end = LEFT + (schedule.end[node] - view.from) * scale;
    if (end < LEFT || x > right) return;
    c.strokeStyle = colours.mark;
    c.lineWidth = 2.5;
    const from = Math.max(x - 2, LEFT - 2), to = Math.min(Math.max(end + 2, x + 4), right + 2);
    c.strokeRect(from, row.y - 2, to - from, this.lane + 4);
    c.lineWidth = 1;
  }

  // The node at a place: the one there, else the nearest within three pixels.
  at(x, y) {
    const { schedule } = this;
    const row = schedule.rows.find((one) => y >= one.y - 1 && y < one.y + this.lane + 1);
    if (!row || x < LEFT || x > LEFT + this.plot) return -1;
    const at = this.instant(x), near = 3 * (this.view.to - this.view.from) / this.plot;
    const i = upperBound(schedule.startAt, row.from, row.to, at) - 1;
    const distances = [i, i + 1].filter((k) => k >= row.from && k < row.to).map((k) => {
      const inside = at >= schedule.startAt[k] && at < schedule.endAt[k];
      return [inside ? 0 : Math.min(Math.abs(at - schedule.startAt[k]), Math.abs(at - schedule.endAt[k])), k];
    }).sort((a, b) => a[0] - b[0]);
    return distances.length && distances[0][0] <= near ? schedule.order[distances[0][1]] : -1;
  }

  pick(x, y) {
    const node = this.at(x, y);
    if (node >= 0) this.selection.select(node); else this.selection.clear();
  }

  tell(x, y) {
    const node = this.at(x, y);
    if (node < 0) return "";
    const { model, schedule } = this;
    const place = model.stack[node] >= 0 ? `  ${model.places[model.stack[node]]}` : "";
    const took = time(schedule.end[node] - schedule.start[node]);
    return `%${node} ${model.operations[model.op[node]]}${place}\n${took}, from ${time(schedule.start[node])}`;
  }

  zoomTo(node) {
    const from = this.schedule.start[node], span = Math.max(this.schedule.end[node] - from, 1);
    this.view.set(from - 6 * span, from + 7 * span);
  }

  // Where a node is on the page, for programs that click: client coordinates of its slice's middle.
  place(node) {
    const { schedule, view } = this;
    const at = schedule.position[node];
    const index = schedule.rows.findIndex((row) => row.from <= at && at < row.to);
    if (index < 0) return null;
    const box = this.canvas.getBoundingClientRect();
    const middle = (Math.max(schedule.start[node], view.from) + Math.min(schedule.end[node], view.to)) / 2;
    const x = LEFT + (middle - view.from) / (view.to - view.from) * this.plot;
    return { x: box.left + x, y: box.top + schedule.rows[index].y + this.lane / 2 };
  }
}
