// The inspector: everything about one node, with links to the nodes before and after it.

const LOOKS = 5, LINKS = 7;

class Inspector {
  constructor(model, selection, timeline, elements) {
    this.model = model;
    this.selection = selection;
    this.timeline = timeline;
    this.elements = elements;
    this.source = elements.source;
    this.panel = document.getElementById("inspector");
    this.body = this.panel.querySelector(".facts");
    this.ties = this.panel.querySelector(".links");
    this.vitals = this.panel.querySelector(".vitals");
    this.whole = this.panel.querySelector(".whole");
    this.idle = this.panel.querySelector(".idle");
    this.title = this.panel.querySelector("h2");
    this.count = this.panel.querySelector(".count");
    const act = (name, action) => this.panel.querySelector(`[data-act="${name}"]`).addEventListener("click", action);
    act("previous", () => selection.step(-1));
    act("next", () => selection.step(1));
    act("zoom", () => timeline.zoomTo(selection.node));
    act("close", () => selection.clear());
    selection.listeners.push(() => this.show());
    this.show();
  }

  link(node) {
    const button = make("button", "node", this.name(node));
    button.type = "button";
    button.style.setProperty("--engine", this.model.colours[this.model.engine_kinds[this.model.op[node]]].solid);
    button.addEventListener("click", () => this.selection.select(node));
    return button;
  }

  name(node) { return `%${node} ${this.model.operations[this.model.op[node]]}`; }

  show() {
    const { model, selection } = this;
    const node = selection.node, none = node < 0 && selection.what === "";
    document.body.classList.toggle("inspecting", !none);
    this.panel.classList.toggle("resting", none);
    this.body.replaceChildren();
    this.ties.replaceChildren();
    this.vitals.replaceChildren();
    this.whole.replaceChildren();
    this.idle.replaceChildren();
    const several = selection.nodes.length > 1;
    for (const button of this.panel.querySelectorAll('[data-act="previous"], [data-act="next"]')) button.hidden = !several;
    for (const button of this.panel.querySelectorAll('[data-act="zoom"], [data-act="close"]')) button.hidden = none;
    const at = this.panel.querySelector(".at");
    at.hidden = !several;
    at.textContent = `${number(selection.at + 1)} / ${number(selection.nodes.length)}`;
    this.count.textContent = several ? selection.what : "";
    this.title.textContent = none ? "Where to look" : node < 0 ? `no node ${selection.what}` : this.name(node);
    if (none) {
      this.rest();
      return;
    }
    if (node < 0) return;
    const row = this.source.row(model.lineOf(node));
    if (row) this.whole.append(...[...row.querySelector("td.code > span").cloneNode(true).childNodes].filter((one) => one.className !== "in"));
    for (const [value, words, more] of this.figures(node)) {
      const one = make("div", "", make("b", "", value), make("span", "", words));
      one.title = more ?? "";
      this.vitals.append(one);
    }
    for (const [term, values] of this.facts(node)) {
      if (values.length) (/^\d+ (before|after)/.test(term) ? this.ties : this.body).append(make("dt", "", term), make("dd", "", ...values));
    }
  }

  // Nothing selected: where to look. The lines with the most of the critical chain, and those that hold the peak.
  rest() {
    const { schedule } = this.timeline;
    const hot = this.source.hottest.map((line) => [percent(schedule.costs.chain[line], schedule.makespan), line]);
    this.idle.append(...this.looks("Most of the critical chain", hot), ...this.looks("Most of the peak in scratch", this.holders()));
    const keys = [["/", "find"], ["h", "hottest"], ["p", "policy"], ["z", "zoom"], ["b", "waited for"], ["?", "all keys"]];
    this.idle.append(make("ul", "", ...keys.map(([key, words]) => make("li", "", make("kbd", "", key), words))));
  }

  // A list of lines to look at, each with its share: they are selected by a click.
  looks(title, rows) {
    if (!rows.length) return [];
    return [make("div", "", make("h3", "", title), ...rows.slice(0, LOOKS).map(([share, line]) => {
      const code = this.source.code(line), place = make("em", "", `:${this.source.number(line)} `);
      const button = make("button", "look", make("b", "", share), make("code", "", place, code));
      button.type = "button";
      button.title = code;
      button.addEventListener("click", () => this.elements.selectLine(line));
      return button;
    }))];
  }

  // The lines whose allocations hold the peak of the fullest rank, with their shares of it, the largest first.
  holders() {
    const { peaks, storages, lines } = this.model, held = new Map();
    const peak = peaks.reduce((best, one) => (one.bytes > best.bytes ? one : best));
    for (const row of peak.holders) {
      const line = storages.stack[row] >= 0 ? lines[storages.stack[row]][0] : undefined;
      if (this.source.has(line)) held.set(line, (held.get(line) ?? 0) + storages.bytes[row]);
    }
    return [...held].sort((a, b) => b[1] - a[1]).map(([line, size]) => [percent(size, peak.bytes), line]);
  }

  // Three figures: its duration, its slack, and its work.
  figures(node) {
    const { model } = this, schedule = this.timeline.schedule;
    const found = [];
    const took = schedule ? schedule.end[node] - schedule.start[node] : 0;
    if (schedule && !model.isMarker(node)) {
      found.push([time(took), schedule.critical[node] ? "critical" : "duration"]);
      const slack = schedule.slack[node];
      found.push([slack ? time(slack) : "none", "slack", "how much later it could start without a later end, the order on every lane kept"]);
    }
    const kind = model.work_kinds[model.op[node]], [a, b, c] = [model.work0[node], model.work1[node], model.work2[node]];
    if (kind === "mnk") found.push([`${a}\u00d7${b}\u00d7${c}`, took ? `${Number((2 * a * b * c / took).toPrecision(3))} TFLOP/s` : "M N K"]);
    else if (kind === "bytes") found.push([bytes(a), took ? `${Number((1000 * a / took).toPrecision(3))} GB/s` : "moved"]);
    else if (kind === "elements") found.push([number(a), "elements"]);
    return found;
  }

  facts(node) {
    const { model, selection } = this;
    const schedule = this.timeline.schedule;
    const scope = model.scope[node];
    const facts = [];
    if (selection.nodes.length > 1 && schedule) {
      let busy = 0, critical = 0;
      for (const one of selection.nodes) {
        const took = schedule.end[one] - schedule.start[one];
        busy += took;
        if (schedule.critical[one]) critical++;
      }
      facts.push([`all ${number(selection.nodes.length)}`, [`${time(busy)} busy, ${number(critical)} of ${number(selection.nodes.length)} critical`]]);
    }
    facts.push(
      ["source", model.stack[node] >= 0 ? [model.places[model.stack[node]]] : []],
      ["scope", scope >= 0 ? [this.scopePath(scope) + (model.ranks > 1 ? `, rank ${model.rank[node]}` : "")] : []],
    );
    if (schedule && !model.isMarker(node)) {
      const from = schedule.start[node], to = schedule.end[node];
      facts.push(["time", [`${time(from)} to ${time(to)}, ${schedule.policy}`]]);
      const cause = model.causes[schedule.cause[node]], behind = this.behind(node);
      if (cause) facts.push(["waited for", behind >= 0 ? [`${cause}: `, this.link(behind)] : [cause]]);
    }
    for (const [term, write] of [["reads", 0], ["writes", 1]]) facts.push([term, this.accessed(node, write)]);
    facts.push(["scratch", [`${number(model.cursor[node])} B held, ${number(model.live[node])} B live`]]);
    if (model.edgeStart) {
      const next = successorsOf(model);
      facts.push([`${model.edgeStart[node + 1] - model.edgeStart[node]} before it`, this.before(node)]);
      facts.push([`${next.start[node + 1] - next.start[node]} after it`, this.after(node)]);
    }
    return facts;
  }

  behind(node) {
    const schedule = this.timeline.schedule;
    return schedule && schedule.behind[node] ? node - schedule.behind[node] : -1;
  }

  scopePath(scope) {
    const { scopes } = this.model;
    const path = [];
    for (let row = scope; row >= 0; row = scopes.parent[row]) path.unshift(scopes.titles[scopes.title[row]]);
    return path.join(" / ");
  }

  accessed(node, write) {
    const { model } = this;
    const told = [];
    for (let i = model.accessStart[node]; i < model.accessStart[node + 1]; i++) {
      if (model.accesses.write[i] !== write) continue;
      const row = model.accesses.storage[i], st = model.storages;
      const place = st.hbm[row] ? "HBM" : `0x${st.address[row].toString(16)}`;
      const size = st.hbm[row] ? "" : `, ${bytes(st.bytes[row])}`;
      const button = make("button", "plain", `${st.names[st.name[row]] || `#${row}`} ${model.layouts[model.accesses.layout[i]]} @ ${place}${size}`);
      button.type = "button";
      button.title = "select all that access it";
      button.addEventListener("click", () => this.pickStorage(row));
      told.push(make("div", "", button));
    }
    return told;
  }

  pickStorage(row) {
    const { model, selection } = this, { accessStart, accesses, storages } = model;
    const nodes = selection.nodesWhere((node) => {
      for (let i = accessStart[node]; i < accessStart[node + 1]; i++) if (accesses.storage[i] === row) return true;
      return false;
    });
    selection.set(nodes, `accessing ${storages.names[storages.name[row]] || `#${row}`}`, nodes.indexOf(selection.node));
  }

  // The nodes that this one has an edge from, with the reasons.
  before(node) {
    const { model } = this, first = model.edgeStart[node], last = model.edgeStart[node + 1];
    return this.links(first, last, (i) => node - model.edges.back[i], (i) => i);
  }

  // The nodes that have an edge from this one.
  after(node) {
    const next = successorsOf(this.model);
    return this.links(next.start[node], next.start[node + 1], (i) => next.target[i], (i) => next.edge[i]);
  }

  links(first, last, nodeOf, edgeOf) {
    const { model } = this, links = [];
    for (let i = first; i < Math.min(last, first + LINKS); i++) {
      const kind = model.edges.kind[edgeOf(i)];
      links.push(make("div", "", this.link(nodeOf(i)), `${model.reasons[kind >> 1]}${kind & 1 ? " (recycled)" : ""}`));
    }
    if (last - first > LINKS) links.push(`and ${number(last - first - LINKS)} more`);
    return links;
  }
}
