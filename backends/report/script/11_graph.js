// The picture of the graph in a view of its own: fitted, zoomed, moved, with a small map of the whole.

class GraphView {
  constructor(model, selection) {
    this.frame = document.getElementById("graph-view");
    this.svg = this.frame && this.frame.querySelector("svg.drawing");
    if (!this.svg) return;
    Object.assign(this, { model, selection });
    this.map = document.getElementById("graph-map");
    const { x, y, width, height } = this.svg.viewBox.baseVal;
    this.whole = { x, y, width, height };
    this.boxes = new Map();
    this.touched = false;
    for (const act of ["in", "out", "fit"]) {
      document.querySelector(`[data-graph="${act}"]`).addEventListener("click", () => this[act]());
    }
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.frame);
    selection.listeners.push(() => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawMap());
    addEventListener("beforeprint", () => this.svg.setAttribute("viewBox", Object.values(this.whole).join(" ")));
    addEventListener("afterprint", () => this.view && this.set(this.view));
  }

  // Where the boxes are, in the drawing's units; known once it is shown.
  measure() {
    if (this.boxes.size) return;
    const shift = this.svg.querySelector("g.graph").transform.baseVal.consolidate()?.matrix ?? { a: 1, d: 1, e: 0, f: 0 };
    for (const box of this.svg.querySelectorAll("[data-box]")) {
      const { x, y, width, height } = box.getBBox();
      this.boxes.set(Number(box.dataset.box), { x: x * shift.a + shift.e, y: y * shift.d + shift.f, width, height });
      this.squeeze(box);
    }
  }

  // Graphviz laid the words out in another font, where this machine lacks that one: what is wider than its box is
  // squeezed into it.
  squeeze(box) {
    const outline = box.querySelector("path, polygon");
    const room = outline ? outline.getBBox().width - 8 : Infinity;
    for (const words of box.querySelectorAll("text")) {
      if (words.getComputedTextLength() <= room) continue;
      words.setAttribute("textLength", room);
      words.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
  }

  // Bold: the boxes of a schedule's critical chain, and the edges along it.
  showChain(schedule) {
    if (!this.svg) return;
    const steps = Array.from(schedule.chain, (node) => this.model.boxes[node]).filter((box) => box >= 0);
    const boxes = new Set(steps), along = new Set(steps.slice(1).map((box, at) => `${steps[at]} ${box}`));
    for (const box of this.svg.querySelectorAll("[data-box]")) box.classList.toggle("critical", boxes.has(Number(box.dataset.box)));
    for (const edge of this.svg.querySelectorAll("[data-ends]")) edge.classList.toggle("critical", along.has(edge.dataset.ends));
    document.getElementById("chain-of").textContent = `bold: critical chain of ${schedule.policy}`;
  }

  // The box with the most of a schedule's critical chain: the picture opens at it.
  focusOn({ chain, start, end }) {
    const sums = new Map();
    for (const node of this.svg ? chain : []) sums.set(this.model.boxes[node], (sums.get(this.model.boxes[node]) ?? 0) + end[node] - start[node]);
    this.focus = [...sums].sort((a, b) => b[1] - a[1])[0]?.[0];
  }

  kindsOf() {
    const { model } = this, kinds = new Map();
    for (let node = 0; node < model.count; node++) if (!kinds.has(model.boxes[node])) kinds.set(model.boxes[node], model.engine_kinds[model.op[node]]);
    return kinds;
  }

  get scale() { return this.frame.clientWidth / this.view.width; }

  resize() {
    if (!this.frame.clientWidth || !this.frame.clientHeight) return;
    this.measure();
    if (!this.touched || !this.view) this.open(); else this.set({ ...this.view, height: this.view.width * this.frame.clientHeight / this.frame.clientWidth });
  }

  // Opened where it can be read: all of it if there is room, else at the selected or at a critical box.
  open() {
    const { whole, frame } = this;
    const fit = Math.min(frame.clientWidth / whole.width, frame.clientHeight / whole.height);
    if (fit > 0.62) { this.fit(); this.touched = false; return; }
    const scale = innerWidth >= 1900 ? 1 : 0.82;
    const [width, height] = [frame.clientWidth / scale, frame.clientHeight / scale];
    const wide = width >= whole.width;
    this.set({ x: wide ? whole.x + (whole.width - width) / 2 : whole.x, y: whole.y, width, height });
    const current = this.svg.querySelector("[data-box].current");
    const at = current ? Number(current.dataset.box) : this.focus;
    const box = this.boxes.get(at);
    if (!box) return;
    const below = box.y + box.height + 30 > this.view.y + this.view.height; // else the top stays in sight
    this.centre(below ? box : { ...box, y: this.view.y, height: this.view.height });
  }

  set(view) {
    const { whole } = this, slack = 40;
    const limit = (at, size, low, all) => size >= all + 2 * slack ? low + (all - size) / 2 : Math.min(Math.max(at, low - slack), low + all + slack - size);
    this.view = { x: limit(view.x, view.width, whole.x, whole.width), y: limit(view.y, view.height, whole.y, whole.height), width: view.width, height: view.height };
    this.svg.setAttribute("viewBox", `${this.view.x} ${this.view.y} ${this.view.width} ${this.view.height}`);
    if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this.drawMap(); }); }
  }

  fit() {
    const { whole, frame } = this;
    const scale = Math.min(frame.clientWidth / (whole.width + 20), frame.clientHeight / (whole.height + 20));
    const width = frame.clientWidth / scale, height = frame.clientHeight / scale;
    this.touched = true;
    this.set({ x: whole.x + (whole.width - width) / 2, y: whole.y + (whole.height - height) / 2, width, height });
  }

  in() { this.zoom(0.7); }

  out() { this.zoom(1 / 0.7); }

  zoom(factor, px = this.frame.clientWidth / 2, py = this.frame.clientHeight / 2) {
    const { view, whole } = this;
    const width = Math.min(Math.max(view.width * factor, 120), Math.max(whole.width, whole.height * this.frame.clientWidth / this.frame.clientHeight) * 1.4);
    const real = width / view.width, x = view.x + px / this.scale, y = view.y + py / this.scale;
    this.touched = true;
    this.set({ x: x - (x - view.x) * real, y: y - (y - view.y) * real, width, height: view.height * real });
  }

  pan(dx, dy) {
    const { view, scale } = this;
    this.touched = true;
    this.set({ ...view, x: view.x + dx / scale, y: view.y + dy / scale });
  }

  centre(box) {
    this.set({ ...this.view, x: box.x + box.width / 2 - this.view.width / 2, y: box.y + box.height / 2 - this.view.height / 2 });
  }

  // The box of the selected node comes into the view.
  follow() {
    if (!this.view) return;
    const current = this.svg.querySelector("[data-box].current");
    if (current) {
      const box = this.boxes.get(Number(current.dataset.box)), { view } = this;
      const inside = box.x >= view.x && box.y >= view.y && box.x + box.width <= view.x + view.width && box.y + box.height <= view.y + view.height;
      if (!inside) this.centre(box);
    }
    this.drawMap();
  }

  listen() {
    const { frame } = this;
    let drag = null;
    frame.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = frame.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
      else if (event.shiftKey && !event.deltaX) this.pan(event.deltaY, 0);
      else this.pan(event.deltaX, event.deltaY);
    }, { passive: false });
    frame.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, moved: false }; });
    frame.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) { frame.setPointerCapture(event.pointerId); frame.classList.add("moving"); }
      drag = { x: event.clientX, y: event.clientY, moved: true };
      this.pan(-dx, -dy);
    });
    const release = () => { drag = null; frame.classList.remove("moving"); };
    frame.addEventListener("pointerup", release);
    frame.addEventListener("pointercancel", release);
    frame.addEventListener("dblclick", (event) => {
      const box = frame.getBoundingClientRect();
      this.zoom(0.5, event.clientX - box.left, event.clientY - box.top);
    });
    frame.addEventListener("keydown", (event) => {
      const acts = {
        "+": () => this.in(), "=": () => this.in(), "-": () => this.out(), "0": () => this.fit(),
        ArrowLeft: () => this.pan(-60, 0), ArrowRight: () => this.pan(60, 0), ArrowUp: () => this.pan(0, -60), ArrowDown: () => this.pan(0, 60),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      acts[event.key]();
    });
    const jump = (event) => {
      const box = this.map.getBoundingClientRect(), { whole } = this;
      this.touched = true;
      this.centre({ x: whole.x + (event.clientX - box.left) / box.width * whole.width, y: whole.y + (event.clientY - box.top) / box.height * whole.height, width: 0, height: 0 });
    };
    this.map.addEventListener("pointerdown", (event) => { this.map.setPointerCapture(event.pointerId); jump(event); });
    this.map.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  }

  // The small map: boxes as rectangles in their colours, and the part shown. None where all is shown.
  drawMap() {
    const { map, whole, view } = this;
    if (!view) return;
    const all = view.width >= whole.width && view.height >= whole.height;
    map.hidden = all;
    if (all) return;
    const ratio = devicePixelRatio || 1, size = Math.min(150 / whole.width, Math.min(170, this.frame.clientHeight * 0.5) / whole.height);
    const width = Math.max(whole.width * size, 24), height = Math.max(whole.height * size, 16), c = map.getContext("2d");
    map.width = width * ratio;
    map.height = height * ratio;
    map.style.width = `${width}px`;
    map.style.height = `${height}px`;
    c.setTransform(ratio * width / whole.width, 0, 0, ratio * height / whole.height, -whole.x * ratio * size, -whole.y * ratio * size);
    const colours = palette();
    this.kinds ??= this.kindsOf();
    for (const [id, box] of this.boxes) {
      const marked = this.svg.querySelector(`[data-box="${id}"]`).classList.contains("selected");
      c.fillStyle = marked ? colours.mark : this.model.colours[this.kinds.get(id) ?? "none"].solid;
      c.fillRect(box.x, box.y, box.width, box.height);
    }
    c.strokeStyle = colours.ink;
    c.lineWidth = 1.5 / size;
    c.strokeRect(view.x, view.y, view.width, view.height);
  }
}
