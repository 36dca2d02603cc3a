// One selection for the whole page: a set of nodes, one of them in the inspector. Panels are told when it changes.

class Selection {
  constructor(model) {
    this.model = model;
    this.nodes = new Int32Array(0);
    this.at = -1;
    this.what = "";
    this.mask = new Uint8Array(model.count);
    this.storages = new Set();
    this.listeners = [];
  }

  get node() { return this.at < 0 ? -1 : this.nodes[this.at]; }

  // The nodes in ascending order; `what` says what they are; `at`: the one to show first.
  set(nodes, what = "", at = 0) {
    this.mask.fill(0);
    for (const node of nodes) this.mask[node] = 1;
    this.nodes = nodes;
    this.what = what;
    this.at = nodes.length ? Math.min(Math.max(at, 0), nodes.length - 1) : -1;
    this.changed(true);
  }

  select(node) { this.set(Int32Array.of(node)); }

  clear() { this.set(new Int32Array(0)); }

  step(by) {
    if (this.nodes.length < 2) return;
    this.at = (this.at + by + this.nodes.length) % this.nodes.length;
    this.changed(false);
  }

  changed(whole) {
    const { accessStart, accesses } = this.model;
    this.storages = new Set();
    if (this.at >= 0) {
      for (let i = accessStart[this.node]; i < accessStart[this.node + 1]; i++) this.storages.add(accesses.storage[i]);
    }
    this.keepInAddress();
    for (const listener of this.listeners) listener(whole);
  }

  // So that a link leads to the node. Inside another page there may be no address to change: then there is no link.
  keepInAddress() {
    const hash = this.at < 0 ? "" : `#node=${this.node}`;
    if (!hash && !location.hash.startsWith("#node=")) return;
    try {
      history.replaceState(null, "", hash || location.pathname);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  }

  nodesWhere(test) {
    const found = [];
    for (let node = 0; node < this.model.count; node++) if (test(node)) found.push(node);
    return Int32Array.from(found);
  }
}

// Source lines, boxes of the graph and findings: elements that stand for sets of nodes.
class Elements {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.lines = [...document.querySelectorAll("[data-line]")];
    this.boxes = [...document.querySelectorAll("[data-box]")];
    this.findings = [...document.querySelectorAll("[data-finding]")];
    for (const row of this.lines) this.listen(row, () => this.selectLine(Number(row.dataset.line)));
    for (const box of this.boxes) this.listen(box, () => this.selectBox(Number(box.dataset.box)));
    for (const one of document.querySelectorAll("[data-select-finding]")) {
      one.addEventListener("click", () => this.selectFinding(Number(one.dataset.selectFinding)));
      one.hidden = false;
    }
    selection.listeners.push(() => this.show());
  }

  listen(element, act) {
    element.addEventListener("click", () => { if (getSelection().isCollapsed) act(); });
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
  }

  selectLine(line) {
    const { lines, stack, isMarker } = this.model;
    const through = lines.map((passed) => passed.includes(line));
    const nodes = this.selection.nodesWhere((node) => stack[node] >= 0 && through[stack[node]] && !isMarker(node));
    this.selection.set(nodes, "of this source line");
  }

  selectBox(box) {
    const { boxes } = this.model;
    this.selection.set(this.selection.nodesWhere((node) => boxes[node] === box), "in this box");
  }

  selectFinding(index) { this.selection.set(this.model.findings[index], "of this finding"); }

  show() {
    const { model, selection } = this;
    const lines = new Set(), boxes = new Set();
    const stacks = new Uint8Array(model.lines.length);
    for (const node of selection.nodes) {
      if (model.stack[node] >= 0) stacks[model.stack[node]] = 1;
      if (model.boxes) boxes.add(model.boxes[node]);
    }
    stacks.forEach((marked, row) => { if (marked) for (const line of model.lines[row]) lines.add(line); });
    const here = selection.node;
    const own = here >= 0 && model.stack[here] >= 0 ? model.lines[model.stack[here]][0] : -1;
    const box = here >= 0 && model.boxes ? model.boxes[here] : -1;
    this.mark(this.lines, (row) => lines.has(Number(row.dataset.line)), (row) => Number(row.dataset.line) === own);
    this.mark(this.boxes, (one) => boxes.has(Number(one.dataset.box)), (one) => Number(one.dataset.box) === box);
    this.mark(this.findings, (one) => {
      const nodes = model.findings[Number(one.dataset.finding)];
      return selection.nodes.length > 0 && nodes.some((node) => selection.mask[node]);
    }, () => false);
  }

  mark(elements, selected, current) {
    for (const element of elements) {
      element.classList.toggle("selected", selected(element));
      const now = current(element);
      element.classList.toggle("current", now);
      if (now) reveal(element);
    }
  }
}

// Scroll an element into the middle of the scrollable panel around it; the page itself stays where it is.
function reveal(element) {
  const panel = element.closest(".panel");
  if (!panel) return;
  const inner = element.getBoundingClientRect(), outer = panel.getBoundingClientRect();
  const outside = (low, high, from, to) => low < from || high > to;
  if (outside(inner.top, inner.bottom, outer.top, outer.bottom)) {
    panel.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
  }
  const fits = inner.width <= outer.width;
  if (fits && outside(inner.left, inner.right, outer.left, outer.right)) {
    panel.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
  }
}
