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

  // The one to show first: the longest critical one, else the longest, of the schedule shown.
  foremost(nodes) {
    const schedule = this.schedule && this.schedule();
    if (!schedule) return 0;
    let best = 0, most = -1;
    nodes.forEach((node, at) => {
      const worth = (schedule.end[node] - schedule.start[node]) * (schedule.critical[node] ? 1e6 : 1);
      if (worth > most) [best, most] = [at, worth];
    });
    return best;
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
    this.edges = [...document.querySelectorAll("[data-ends]")];
    this.findings = [...document.querySelectorAll("[data-finding]")];
    for (const row of this.lines) this.listen(row, () => this.selectLine(Number(row.dataset.line)));
    for (const box of this.boxes) this.listen(box, () => this.selectBox(Number(box.dataset.box)));
    this.paint();
    this.fold();
    this.previews = [];
    for (const row of this.lines) this.previewed(row, () => this.nodesOfLine(Number(row.dataset.line)));
    for (const box of this.boxes) this.previewed(box, () => this.nodesOfBox(Number(box.dataset.box)));
    for (const one of document.querySelectorAll("[data-select-finding]")) {
      one.addEventListener("click", () => this.selectFinding(Number(one.dataset.selectFinding)));
      one.hidden = false;
    }
    selection.listeners.push(() => this.show());
  }

  // The words of the source in a few colours.
  paint() {
    const words = /(#.*$)|("""[^]*?"""|'''[^]*?'''|[rfb]?"(?:[^"\\]|\\.)*"|[rfb]?'(?:[^'\\]|\\.)*')|\b(and|as|assert|break|class|continue|def|elif|else|for|from|if|import|in|is|lambda|None|not|or|pass|raise|return|True|False|while|with|yield)\b|\b(tl\.\w+)/g;
    for (const code of document.querySelectorAll(".source td.code > span:first-child")) {
      const text = code.textContent, parts = [];
      let at = /^ */.exec(text)[0].length;
      if (at) {
        const indent = make("span", "in", text.slice(0, at));
        indent.style.setProperty("--in", at);
        parts.push(indent);
      }
      for (const found of text.matchAll(words)) {
        parts.push(text.slice(at, found.index), make("span", found[1] ? "c" : found[2] ? "s" : found[3] ? "k" : "o", found[0]));
        at = found.index + found[0].length;
      }
      if (at) code.replaceChildren(...parts, text.slice(at));
    }
  }

  // Lines that cost nothing are folded where there are many of them; what opens a block around a line that costs stays.
  fold() {
    const rows = [...document.querySelectorAll(".source tbody tr")];
    const text = rows.map((row) => row.querySelector("td.code > span")?.textContent ?? "");
    const indent = text.map((line) => (line.trim() ? line.search(/\S/) : Infinity));
    const isFile = (at) => rows[at].classList.contains("file");
    const kept = new Uint8Array(rows.length);
    rows.forEach((row, at) => {
      if (isFile(at) || /^\s*(async )?def /.test(text[at]) || row.querySelector(".badge")) kept[at] = 1;
      if (!("line" in row.dataset)) return;
      kept[at] = 1;
      let inner = indent[at];
      for (let above = at - 1; above >= 0 && !isFile(above) && inner > 0; above--) {
        if (indent[above] >= inner) continue;
        inner = indent[above];
        if (kept[above]) break; // what is around it is kept already
        if (/^\s*(for|while|with|if|elif|else|try|async)\b/.test(text[above])) kept[above] = 1;
      }
    });
    for (let at = 0; at < rows.length; at++) {
      let end = at;
      while (end < rows.length && !kept[end]) end++;
      if (end - at >= 4) {
        const run = rows.slice(at, end), first = run[0].cells[0].textContent;
        const show = make("button", "", `\u22ef ${end - at} lines that cost nothing`);
        const row = make("tr", "fold", ...[...run[0].cells].map((cell) => make("td", cell.className)));
        show.type = "button";
        show.setAttribute("aria-label", `show ${end - at} lines from ${first} on`);
        show.addEventListener("click", () => { row.remove(); for (const one of run) one.hidden = false; });
        row.cells[0].textContent = first;
        row.cells[row.cells.length - 1].append(show);
        run[0].before(row);
        for (const one of run) one.hidden = true;
      }
      at = Math.max(at, end - (end > at ? 1 : 0));
    }
  }

  // What is pointed at shows where its nodes are, before it is selected.
  previewed(element, nodesOf) {
    element.addEventListener("pointerenter", () => this.preview(nodesOf));
    element.addEventListener("pointerleave", () => this.preview(null));
  }

  preview(nodesOf) {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => { const nodes = nodesOf ? nodesOf() : null; for (const one of this.previews) one(nodes); }, nodesOf ? 40 : 0);
  }

  // The node that is pointed at in another panel: its line and its box.
  pointAt(node) {
    if (node === this.pointed) return;
    this.pointed = node;
    for (const one of document.querySelectorAll(".pointed")) one.classList.remove("pointed");
    if (node < 0) return;
    const { model } = this;
    const line = model.stack[node] >= 0 ? model.lines[model.stack[node]][0] : undefined;
    if (line !== undefined) this.lineRow(line)?.classList.add("pointed");
    if (model.boxes) document.querySelector(`[data-box="${model.boxes[node]}"]`)?.classList.add("pointed");
  }

  // The gutters of the policy shown.
  costs(schedule) {
    const { chain, busy } = schedule.costs;
    const gutter = (kind, values, say) => {
      const most = values.reduce((a, b) => Math.max(a, b), 1);
      for (const row of this.lines) {
        const value = values[Number(row.dataset.line)];
        const cost = make("span", "cost", value ? say(value) : "");
        cost.style.setProperty("--share", `${100 * value / most}%`);
        cost.title = value ? `${time(value)}, ${percent(value, schedule.makespan)} of the makespan` : "";
        row.querySelector(kind).replaceChildren(...(value ? [cost] : []));
      }
    };
    if (!chain.length) return;
    gutter(".g-crit", chain, (value) => percent(value, schedule.makespan));
    gutter(".g-busy", busy, time);
    this.hottest = this.lines.map((row) => Number(row.dataset.line)).filter((line) => chain[line] > 0)
      .sort((a, b) => chain[b] - chain[a] || a - b);
    for (const row of this.lines) row.classList.toggle("hottest", Number(row.dataset.line) === this.hottest[0]);
    const hot = document.querySelector(".hot");
    if (!hot) return;
    hot.replaceChildren(...this.hottest.slice(0, 3).map((line) => {
      const chip = make("button", "chip", `:${this.lineNumber(line)} `, make("b", "", percent(chain[line], schedule.makespan)));
      chip.type = "button";
      chip.addEventListener("click", () => this.selectLine(line));
      return chip;
    }));
  }

  lineRow(line) { return document.querySelector(`[data-line="${line}"]`); }

  codeOf(line) { return this.lineRow(line).querySelector("td.code > span").textContent.trim(); }

  lineNumber(line) { return this.lineRow(line).cells[0].textContent; }

  // The next hottest line; open the pane at the first one.
  nextHot() {
    if (!this.hottest || !this.hottest.length) return;
    this.hot = this.hot === undefined ? 0 : (this.hot + 1) % Math.min(this.hottest.length, 8);
    this.selectLine(this.hottest[this.hot]);
  }

  openAtHottest() { if (this.hottest && this.hottest.length) reveal(this.lineRow(this.hottest[0])); }

  listen(element, act) {
    element.addEventListener("click", () => { if (getSelection().isCollapsed) act(); });
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
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
    this.selection.set(nodes, `of line ${this.lineNumber(line)}`, this.selection.foremost(nodes));
    reveal(this.lineRow(line));
  }

  selectBox(box) { this.selection.set(this.nodesOfBox(box), "in this box"); }

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
