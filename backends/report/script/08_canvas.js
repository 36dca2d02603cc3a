// What the timeline and the scratch map share: a canvas with an axis, the part shown, and how it is moved.

// Colours of the page, read anew when the theme changes.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["card", "line", "soft", "ink", "text", "mute", "accent", "bad", "mark", "wait"].map((n) => [n, named(n)]));
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

  get all() { return this.from <= 0 && this.to >= Math.min(this.until ?? this.whole, this.whole) - 1; }

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

  // From one instant to another: how long, and how busy each engine of the first open rank is.
  measure(from, to) {
    this.span = [Math.min(from, to), Math.max(from, to)];
    this.follow();
  }

  follow() {
    const { timeline, span } = this;
    this.element.classList.toggle("range", span !== null);
    if (!span) return;
    const x = (at) => timeline.left + Math.min(Math.max((at - timeline.view.from) / (timeline.view.to - timeline.view.from), 0), 1) * timeline.plot;
    const { rank } = (timeline.rows.find((row) => timeline.open.has(row.about.rank)) ?? timeline.rows[0]).about;
    const busy = timeline.rows.filter((row) => row.about.rank === rank)
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
