// Source lines, boxes of the graph and findings: elements that stand for sets of nodes. They select them, show where
// they are while they are pointed at, and are marked where their nodes are selected.

const PREVIEW_MS = 40;

class Elements {
  constructor(model, selection, source) {
    this.model = model;
    this.selection = selection;
    this.source = source;
    this.boxes = [...document.querySelectorAll("[data-box]")];
    this.edges = [...document.querySelectorAll("[data-ends]")];
    this.findings = [...document.querySelectorAll("[data-finding]")];
    this.previews = []; // who is told what is pointed at: nodes, or null
    for (const [line, row] of source.byLine) this.stand(row, () => this.selectLine(line), () => this.nodesOfLine(line));
    for (const box of this.boxes) {
      const id = Number(box.dataset.box);
      this.stand(box, () => this.selectBox(id), () => this.nodesOfBox(id));
    }
    for (const one of document.querySelectorAll("[data-select-finding]")) {
      one.addEventListener("click", () => this.selectFinding(Number(one.dataset.selectFinding)));
      one.hidden = false;
    }
    source.pick = (line) => this.selectLine(line);
    selection.listeners.push(() => this.show());
  }

  stand(element, act, nodesOf) {
    element.addEventListener("click", () => { if (getSelection().isCollapsed) act(); });
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
    element.addEventListener("pointerenter", () => this.preview(nodesOf));
    element.addEventListener("pointerleave", () => this.preview(null));
  }

  preview(nodesOf) {
    clearTimeout(this.soon);
    const tell = () => { const nodes = nodesOf ? nodesOf() : null; for (const one of this.previews) one(nodes); };
    this.soon = setTimeout(tell, nodesOf ? PREVIEW_MS : 0);
  }

  // The node that is pointed at in another panel: its line and its box.
  pointAt(node) {
    if (node === this.pointed) return;
    this.pointed = node;
    for (const one of document.querySelectorAll(".pointed")) one.classList.remove("pointed");
    if (node < 0) return;
    this.source.row(this.model.lineOf(node))?.classList.add("pointed");
    if (this.model.boxes) document.querySelector(`[data-box="${this.model.boxes[node]}"]`)?.classList.add("pointed");
  }

  nodesOfLine(line) {
    const { lines, stack, isMarker } = this.model;
    const through = lines.map((passed) => passed.includes(line));
    return this.selection.nodesWhere((node) => stack[node] >= 0 && through[stack[node]] && !isMarker(node));
  }

  nodesOfBox(box) {
    const { boxes } = this.model;
    return this.selection.nodesWhere((node) => boxes[node] === box);
  }

  selectLine(line) {
    const nodes = this.nodesOfLine(line);
    this.selection.set(nodes, `of line ${this.source.number(line)}`, this.selection.foremost(nodes));
    reveal(this.source.row(line));
  }

  selectBox(box) { this.selection.set(this.nodesOfBox(box), "in this box"); }

  selectFinding(index) { this.selection.set(this.model.findings[index], "of this finding"); }

  nextHot() {
    const line = this.source.nextHot();
    if (line !== undefined) this.selectLine(line);
  }

  show() {
    const { model, selection } = this;
    const lines = new Set(), boxes = new Set();
    const stacks = new Uint8Array(model.lines.length);
    for (const node of selection.nodes) {
      if (model.stack[node] >= 0) stacks[model.stack[node]] = 1;
      if (model.boxes) boxes.add(model.boxes[node]);
    }
    stacks.forEach((marked, row) => { if (marked) for (const line of model.lines[row]) lines.add(line); });
    const here = selection.node, own = here >= 0 ? model.lineOf(here) : -1;
    const box = here >= 0 && model.boxes ? model.boxes[here] : -1;
    this.mark(this.source.rows, (row) => lines.has(Number(row.dataset.line)), (row) => Number(row.dataset.line) === own);
    this.mark(this.boxes, (one) => boxes.has(Number(one.dataset.box)), (one) => Number(one.dataset.box) === box);
    for (const edge of this.edges) edge.classList.toggle("near", box >= 0 && edge.dataset.ends.split(" ").includes(String(box)));
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
