// The timeline: engines as rows, drawn on a canvas. What is narrower than a pixel is drawn as how busy the pixel is.

// Colours of the page, read anew when the theme changes.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["card", "line", "soft", "ink", "text", "mute", "accent", "bad", "mark", "hot"].map((n) => [n, named(n)]));
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
    const scale = devicePixelRatio || 1, width = Math.max(this.canvas.parentElement.clientWidth, 280);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.big = innerWidth >= 1900;
    this.context.font = this.big ? FONT.replace("11px", "12px") : FONT;
    this.colours = palette();
    this.left = width < 520 ? 78 : this.big ? 152 : 124; // one gutter and one margin, so that instants lie above each other
    this.plot = width - this.left - 12;
    return width;
  }

  text(words, x, y, colour, align = "left") {
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.fillText(words, x, y);
  }

  // The upright lines of an axis; with `say` also its instants, written at `y`.
  axis(from, to, top, bottom, say = null, y = 13) {
    const { left } = this, right = left + this.plot, scale = this.plot / (to - from);
    for (const at of ticks(from, to, Math.max(2, Math.floor(this.plot / 110)))) {
      const x = left + (at - from) * scale;
      this.context.fillStyle = this.colours.line;
      this.context.fillRect(Math.round(x), top, 1, bottom - top);
      if (say) this.text(say(at), Math.min(Math.max(x, left), right), y, this.colours.mute, x > right - 30 ? "right" : x < left + 30 ? "left" : "center");
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

// A line through the timeline and the scratch map where the pointer is, or a band over a span that is measured: an
// element of its own, so that nothing is drawn anew when the pointer moves.
class Cursor {
  constructor(timeline) {
    this.timeline = timeline;
    this.element = document.getElementById("cursor");
    this.span = null;
  }

  at(x) {
    if (this.span) return;
    const { timeline } = this, inside = x >= timeline.left && x <= timeline.left + timeline.plot;
    this.element.hidden = !inside;
    if (!inside) return;
    this.place(x, 0, time(timeline.instant(x)));
    this.element.classList.toggle("left", x > timeline.left + timeline.plot - 90);
  }

  place(x, width, words) {
    this.element.hidden = false;
    this.element.style.left = `${x}px`;
    this.element.style.width = `${width}px`;
    this.element.firstElementChild.textContent = words;
  }

  // From one instant to another: how long, and how busy each engine of the first rank shown is.
  measure(from, to) {
    this.span = [Math.min(from, to), Math.max(from, to)];
    this.follow();
  }

  follow() {
    const { timeline, span } = this;
    this.element.classList.toggle("range", span !== null);
    if (!span) return;
    const x = (at) => timeline.left + Math.min(Math.max((at - timeline.view.from) / (timeline.view.to - timeline.view.from), 0), 1) * timeline.plot;
    const busy = timeline.schedule.rows.filter((row) => row.about.rank === timeline.schedule.rows[0].about.rank)
      .map((row) => `${row.about.name}${row.about.lanes > 1 ? ` ${row.lane}` : ""} ${percent(timeline.busyIn(row, ...span), span[1] - span[0])}`);
    this.place(x(span[0]), x(span[1]) - x(span[0]), [time(Math.round(span[1] - span[0])), ...busy].join("\n"));
    this.element.classList.toggle("left", x(span[0]) > timeline.left + timeline.plot - 120);
  }

  clear() { this.span = null; this.element.hidden = true; this.element.classList.remove("range"); }
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
    const [x] = at(event);
    picture.cursor?.clear();
    drag = { x: event.clientX, moved: false, measures: event.shiftKey && picture.cursor ? picture.instant(x) : null };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const by = event.clientX - drag.x;
      if (drag.measures !== null) {
        drag.moved = true;
        picture.cursor.measure(drag.measures, picture.instant(Math.min(Math.max(at(event)[0], picture.left), picture.left + picture.plot)));
        return;
      }
      if (drag.moved || Math.abs(by) > 4) {
        drag = { x: event.clientX, moved: true, measures: null };
        view().pan(-by / picture.plot);
      }
      return;
    }
    picture.cursor?.at(at(event)[0]);
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
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; picture.cursor?.at(-1); picture.pointed?.(-1); });
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

const HEAD = 16, THIN = 4, SHADES = 12;

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
    if (view.from > 0 || view.to < view.until - 1) {
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
    const chooser = document.getElementById("timeline-policy");
    chooser.addEventListener("change", () => this.show(Number(chooser.value)));
    selection.listeners.push(() => {
      const { node } = selection;
      if (node >= 0) this.reveal(model.rank[node]);
      this.positions.marked = this.find(selection.nodes);
      if (node >= 0) this.view.see(this.schedule.start[node], this.schedule.end[node]);
      if (node >= 0) this.scrollTo(node);
      this.redraw();
    });
    this.redraw();
  }

  show(index) {
    const whole = this.view.from === 0 && this.view.to >= this.view.until - 1;
    this.schedule = this.model.schedules[index];
    this.layOut();
    this.cursor.clear();
    this.selection.changed(false);
    if (whole) this.view.fit(); else this.redraw();
    this.axisAbove.redraw();
  }

  // The rows' places, and where on them the critical chain lies. Of many ranks those not opened have thin rows.
  layOut() {
    const { rows } = this.schedule;
    this.view.until = Math.max(this.schedule.makespan, this.schedule.bound) * 1.01;
    let y = 3, rank = -1;
    const high = rows.length <= 6 ? 21 : 17, thin = rows.length > 30 ? 2 : THIN;
    this.heads = [];
    for (const row of rows) {
      const wide = this.model.ranks <= 1 || this.open.has(row.about.rank);
      if (row.about.rank !== rank) {
        rank = row.about.rank;
        if (this.model.ranks > 1) {
          if (this.heads.length) { y = Math.max(y + 3, this.heads.at(-1).y + HEAD); }
          this.heads.push({ rank, y, wide });
          if (wide) y += HEAD;
        }
      }
      row.h = wide ? high + (innerWidth >= 1900 ? 3 : 0) : thin;
      row.y = y;
      y += row.h + (wide ? 2 : 1);
    }
    this.height = Math.max(y, this.heads.length ? this.heads.at(-1).y + HEAD : 0) + 4;
    this.canvas.style.height = `${this.height}px`;
    this.positions.critical = this.find(this.schedule.chain);
    this.positions.marked = this.find(this.selection.nodes);
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
    return this.schedule.rows.find((row) => row.from <= at && at < row.to);
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
    for (const { rank, y, wide } of this.heads) {
      this.text(wide ? "\u25be" : "\u25b8", 4, y + 12, colours.mute);
      this.text(`rank ${rank}`, 16, y + 12, colours.ink);
    }
    schedule.rows.forEach((row, index) => {
      c.fillStyle = colours.soft;
      c.fillRect(left, row.y, this.plot, row.h);
      if (row.h > THIN) {
        const lane = row.about.lanes > 1 ? ` ${row.lane}` : "", base = row.y + row.h / 2 + 4;
        const share = left > 100 && until > view.from ? percent(this.busyIn(row, view.from, until), until - view.from) : "";
        this.text(share, left - 8, base, colours.mute, "right");
        this.text(row.about.name + lane, left - (left > 100 ? 44 : 6), base, colours.text, "right");
      }
    });
    this.axis(view.from, view.to, 0, this.height);
    schedule.rows.forEach((row, index) => {
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
    const whole = view.from <= 0 && view.to >= view.until - 1;
    shown.textContent = whole ? `${schedule.policy}, all ${time(schedule.makespan)}` : `${schedule.policy}, ${time(Math.round(view.from))} to ${time(Math.round(view.to))}`;
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
    const { schedule, view } = this;
    let low = 0, high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (schedule.endAt[places[middle]] < view.from) low = middle + 1; else high = middle;
    }
    let from = -1, to = -1;
    for (let k = low; k < places.length && schedule.startAt[places[k]] <= view.to; k++) {
      const x = Math.max(this.left + (schedule.startAt[places[k]] - view.from) * scale, this.left);
      const end = Math.min(Math.max(this.left + (schedule.endAt[places[k]] - view.from) * scale, x + 1), right);
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
    const high = row.h > THIN ? 4 : 2;
    if (row.h <= THIN) c.globalAlpha = 0.7;
    this.visible(places, scale, right, (x, width) => c.fillRect(x - 0.5, row.y - 1, Math.max(width, 2) + 1, high));
    c.globalAlpha = 1;
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
    const row = schedule.rows.find((one) => y >= one.y - 1 && y < one.y + one.h + 1);
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
    const at = schedule.position[node];
    const index = schedule.rows.findIndex((row) => row.from <= at && at < row.to);
    if (index < 0) return null;
    const box = this.canvas.getBoundingClientRect();
    const middle = (Math.max(schedule.start[node], view.from) + Math.min(schedule.end[node], view.to)) / 2;
    const x = this.left + (middle - view.from) / (view.to - view.from) * this.plot;
    return { x: box.left + x, y: box.top + schedule.rows[index].y + schedule.rows[index].h / 2 };
  }
}
