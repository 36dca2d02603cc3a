// The source pane: words in colours, lines that cost nothing folded, the gutters of the policy shown, the hottest lines.

const PYTHON = new RegExp([
  /(#.*$)/,
  /("""[^]*?"""|'''[^]*?'''|[rfb]?"(?:[^"\\]|\\.)*"|[rfb]?'(?:[^'\\]|\\.)*')/,
  /\b(and|as|assert|break|class|continue|def|elif|else|for|from|if|import|in|is|lambda|None|not|or|pass|raise|return|True|False|while|with|yield)\b/,
  /\b(tl\.\w+)/,
].map((one) => one.source).join("|"), "g");
const WORD_CLASSES = ["c", "s", "k", "o"]; // of the groups above: comment, string, keyword, operation
const OPENS_A_BLOCK = /^\s*(for|while|with|if|elif|else|try|async)\b/, DEFINES = /^\s*(async )?def /;
const FOLDED_FROM = 4, CHIPS = 3, HOT_LINES = 8;

class Source {
  constructor() {
    this.all = [...document.querySelectorAll(".source tbody tr")];
    this.rows = this.all.filter((row) => "line" in row.dataset);
    this.byLine = new Map(this.rows.map((row) => [Number(row.dataset.line), row]));
    this.hottest = [];
    this.hot = -1;
    this.pick = () => {}; // what a click on a chip does with its line
    for (const row of this.all) this.paint(row);
    this.fold();
  }

  has(line) { return this.byLine.has(line); }

  row(line) { return this.byLine.get(line); }

  code(line) { return this.text(this.row(line)).trim(); }

  number(line) { return this.row(line).cells[0].textContent; }

  text(row) { return row.querySelector("td.code > span")?.textContent ?? ""; }

  paint(row) {
    const code = row.querySelector("td.code > span");
    if (!code) return;
    const text = code.textContent, parts = [];
    let at = /^ */.exec(text)[0].length;
    if (at) {
      const indent = make("span", "in", text.slice(0, at));
      indent.style.setProperty("--in", at);
      parts.push(indent);
    }
    for (const found of text.matchAll(PYTHON)) {
      const group = found.slice(1).findIndex((one) => one !== undefined);
      parts.push(text.slice(at, found.index), make("span", WORD_CLASSES[group], found[0]));
      at = found.index + found[0].length;
    }
    code.replaceChildren(...parts, text.slice(at));
  }

  // Lines that cost nothing are folded where there are many of them; what opens a block around a line that costs stays.
  fold() {
    const kept = this.keptRows();
    for (let at = 0; at < this.all.length; at++) {
      const first = at;
      while (at < this.all.length && !kept[at]) at++;
      if (at - first >= FOLDED_FROM) this.foldRun(this.all.slice(first, at));
    }
  }

  keptRows() {
    const text = this.all.map((row) => this.text(row));
    const indent = text.map((line) => (line.trim() ? line.search(/\S/) : Infinity));
    const isFile = (at) => this.all[at].classList.contains("file");
    const kept = new Uint8Array(this.all.length);
    this.all.forEach((row, at) => {
      if (isFile(at) || DEFINES.test(text[at]) || row.querySelector(".badge, .way.other")) kept[at] = 1;
      if (!("line" in row.dataset)) return;
      kept[at] = 1;
      let inner = indent[at];
      for (let above = at - 1; above >= 0 && !isFile(above) && inner > 0; above--) {
        if (indent[above] >= inner) continue;
        inner = indent[above];
        if (kept[above]) break; // what is around it is kept already
        if (OPENS_A_BLOCK.test(text[above])) kept[above] = 1;
      }
    });
    return kept;
  }

  foldRun(run) {
    const first = run[0].cells[0].textContent;
    const show = make("button", "", `\u22ef ${run.length} lines that cost nothing`);
    const row = make("tr", "fold", ...[...run[0].cells].map((cell) => make("td", cell.className)));
    show.type = "button";
    show.setAttribute("aria-label", `show ${run.length} lines from ${first} on`);
    show.addEventListener("click", () => { row.remove(); for (const one of run) one.hidden = false; });
    row.cells[0].textContent = first;
    row.cells[row.cells.length - 1].append(show);
    run[0].before(row);
    for (const one of run) one.hidden = true;
  }

  // The gutters of a schedule, and which lines have the most of its critical chain.
  show(schedule) {
    const { chain, busy } = schedule.costs;
    if (!chain.length) return;
    this.gutter(".g-crit", chain, schedule, (value) => percent(value, schedule.makespan));
    this.gutter(".g-busy", busy, schedule, time);
    this.hottest = [...this.byLine.keys()].filter((line) => chain[line] > 0).sort((a, b) => chain[b] - chain[a] || a - b);
    this.hot = -1;
    for (const [line, row] of this.byLine) row.classList.toggle("hottest", line === this.hottest[0]);
    document.querySelector(".hot")?.replaceChildren(...this.hottest.slice(0, CHIPS).map((line) => {
      const chip = make("button", "chip", `:${this.number(line)} `, make("b", "", percent(chain[line], schedule.makespan)));
      chip.type = "button";
      chip.addEventListener("click", () => this.pick(line));
      return chip;
    }));
  }

  gutter(kind, values, schedule, say) {
    const most = values.reduce((a, b) => Math.max(a, b), 1);
    for (const [line, row] of this.byLine) {
      const value = values[line], cost = make("span", "cost", value ? say(value) : "");
      cost.style.setProperty("--share", `${100 * value / most}%`);
      cost.title = value ? `${time(value)}, ${percent(value, schedule.makespan)} of the makespan` : "";
      row.querySelector(kind).replaceChildren(...(value ? [cost] : []));
    }
  }

  // The next of the hottest lines; undefined where there is none.
  nextHot() {
    this.hot = (this.hot + 1) % Math.max(Math.min(this.hottest.length, HOT_LINES), 1);
    return this.hottest[this.hot];
  }

  openAtHottest() { if (this.hottest.length) reveal(this.row(this.hottest[0])); }
}
