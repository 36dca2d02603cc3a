// One field that finds operations, tensors, scopes, source lines and nodes.

const HITS = 14;

class Search {
  constructor(model, selection, elements) {
    Object.assign(this, { model, selection, elements, source: elements.source });
    this.form = document.getElementById("go-to");
    this.field = this.form.querySelector("input");
    this.list = document.getElementById("hits");
    this.hits = [];
    this.at = 0;
    this.field.addEventListener("input", () => this.ask());
    this.field.addEventListener("focus", () => this.ask());
    this.field.addEventListener("blur", () => { this.list.hidden = true; });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        this.point((this.at + (event.key === "ArrowDown" ? 1 : -1) + this.hits.length) % Math.max(this.hits.length, 1));
      } else if (event.key === "Escape") {
        this.field.value = "";
        this.field.blur();
      }
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
      if (this.field.value.trim() && this.hits.length) this.take(this.hits[this.at]);
    });
  }

  // What there is to find, made when first asked for.
  get index() {
    if (this.known) return this.known;
    const { model } = this, found = [];
    const counts = new Int32Array(model.operations.length);
    for (let node = 0; node < model.count; node++) counts[model.op[node]]++;
    model.operations.forEach((name, op) => {
      if (counts[op]) found.push({ kind: "op", text: name, note: plural(counts[op], "node"), act: () => this.choose((node) => model.op[node] === op, `of ${name}`) });
    });
    model.storages.names.forEach((name, row) => {
      if (name) found.push({ kind: "tensor", text: name, note: "", act: () => this.chooseTensor(row, name) });
    });
    model.scopes.titles.forEach((title, row) => {
      if (title) found.push({ kind: "scope", text: title, note: "", act: () => this.choose((node) => model.scope[node] >= 0 && model.scopes.title[model.scope[node]] === row && !model.isMarker(node), `in ${title}`) });
    });
    for (const [line, row] of this.source.byLine) {
      const note = row.querySelector(".g-crit").textContent;
      found.push({ kind: "line", text: `:${this.source.number(line)} ${this.source.code(line)}`, note, act: () => this.elements.selectLine(line) });
    }
    return this.known = found;
  }

  choose(test, what) { this.selection.set(this.selection.nodesWhere(test), what); }

  chooseTensor(row, name) {
    const { accessStart, accesses, storages } = this.model;
    this.choose((node) => {
      for (let i = accessStart[node]; i < accessStart[node + 1]; i++) if (storages.name[accesses.storage[i]] === row) return true;
      return false;
    }, `accessing ${name}`);
  }

  // What fits some words: the node of that number, then what equals, begins with, or holds them.
  find(sought) {
    const { model } = this, id = /^%?(\d+)$/.exec(sought), found = [];
    if (id && Number(id[1]) < model.count) {
      const node = Number(id[1]), note = model.places[model.stack[node]] ?? "";
      found.push({ kind: "node", text: `%${node} ${labelOf(model, node)}`, note, act: () => this.selection.select(node) });
    }
    if (!sought || sought[0] === "%") return found;
    const fits = (one) => {
      const text = one.text.toLowerCase(), at = text.indexOf(sought);
      return at < 0 ? -1 : text === sought ? 0 : at === 0 ? 1 : 2;
    };
    const ranked = this.index.map((one) => [fits(one), one]).filter(([fit]) => fit >= 0).sort((a, b) => a[0] - b[0]);
    return [...found, ...ranked.slice(0, HITS).map(([, one]) => one)];
  }

  ask() {
    const sought = this.field.value.trim().toLowerCase();
    this.hits = this.find(sought);
    this.list.replaceChildren(...this.hits.map((one) => {
      const row = make("li", "", make("span", "", one.kind), make("span", "", one.text), make("span", "", one.note));
      row.role = "option";
      row.addEventListener("pointerdown", (event) => { event.preventDefault(); this.take(one); });
      return row;
    }));
    if (sought && !this.hits.length) this.list.append(make("li", "none", "nothing found"));
    this.list.hidden = !sought || document.activeElement !== this.field;
    this.point(0);
  }

  point(at) {
    this.at = at;
    [...this.list.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === at)));
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  take(hit) {
    hit.act();
    this.list.hidden = true;
    this.field.blur();
  }
}
