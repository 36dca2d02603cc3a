// One field that finds operations, tensors, scopes, source lines and nodes.

const HITS = 14;

class Search {
  constructor(model, selection, elements) {
    Object.assign(this, { model, selection, elements });
    this.form = document.getElementById("go-to");
    this.field = this.form.querySelector("input");
    this.list = document.getElementById("hits");
    this.hits = [];
    this.at = 0;
    this.field.addEventListener("input", () => this.ask());
    this.field.addEventListener("focus", () => this.ask());
    this.field.addEventListener("blur", () => setTimeout(() => { this.list.hidden = true; }, 150));
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
    for (const row of this.elements.lines) {
      const [place, code] = [row.cells[0].textContent, row.querySelector("td.code > span").textContent.trim()];
      found.push({ kind: "line", text: `:${place} ${code}`, note: row.querySelector(".g-crit").textContent, act: () => this.elements.selectLine(Number(row.dataset.line)) });
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

  ask() {
    const sought = this.field.value.trim().toLowerCase();
    const id = /^%?(\d+)$/.exec(sought);
    this.hits = [];
    if (id && Number(id[1]) < this.model.count) {
      const node = Number(id[1]);
      this.hits.push({ kind: "node", text: `%${node} ${labelOf(this.model, node)}`, note: this.model.places[this.model.stack[node]] ?? "", act: () => this.selection.select(node) });
    }
    if (sought && sought[0] !== "%") {
      const rank = (one) => { const at = one.text.toLowerCase().indexOf(sought); return at < 0 ? 9 : one.text.toLowerCase() === sought ? 0 : at === 0 ? 1 : 2; };
      this.hits.push(...this.index.map((one) => [rank(one), one]).filter(([r]) => r < 9).sort((a, b) => a[0] - b[0]).slice(0, HITS).map(([, one]) => one));
    }
    this.list.replaceChildren(...this.hits.map((one) => {
      const row = make("li", "", make("span", "", one.kind), make("span", "", one.text), make("span", "", one.note));
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
