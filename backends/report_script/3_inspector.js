// The inspector: everything about one node, with links to the nodes it waits for.

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

class Inspector {
  constructor(model, selection, timeline) {
    this.model = model;
    this.selection = selection;
    this.timeline = timeline;
    this.panel = document.getElementById("inspector");
    this.body = this.panel.querySelector(".facts");
    this.title = this.panel.querySelector("h2");
    this.count = this.panel.querySelector(".count");
    const act = (name, action) => this.panel.querySelector(`[data-act="${name}"]`).addEventListener("click", action);
    act("previous", () => selection.step(-1));
    act("next", () => selection.step(1));
    act("zoom", () => timeline.zoomTo(selection.node));
    act("close", () => selection.clear());
    selection.listeners.push(() => this.show());
  }

  link(node) {
    const button = make("button", "node", this.name(node));
    button.type = "button";
    button.addEventListener("click", () => this.selection.select(node));
    return button;
  }

  name(node) { return `%${node} ${this.model.operations[this.model.op[node]]}`; }

  show() {
    const { model, selection } = this;
    const node = selection.node;
    this.panel.hidden = node < 0 && selection.what === "";
    document.body.classList.toggle("inspecting", !this.panel.hidden);
    this.body.replaceChildren();
    const several = selection.nodes.length > 1;
    for (const button of this.panel.querySelectorAll('[data-act="previous"], [data-act="next"]')) button.hidden = !several;
    this.panel.querySelector('[data-act="zoom"]').hidden = node < 0;
    this.count.textContent = several
      ? `${number(selection.at + 1)} of ${number(selection.nodes.length)} ${selection.what}` : "";
    this.title.textContent = node < 0 ? `no node ${selection.what}` : this.name(node);
    if (node < 0) return;
    for (const [term, values] of this.facts(node)) {
      if (values.length) this.body.append(make("dt", "", term), make("dd", "", ...values));
    }
  }

  facts(node) {
    const { model } = this;
    const schedule = this.timeline.schedule;
    const scope = model.scope[node];
    const facts = [
      ["source", model.stack[node] >= 0 ? [model.places[model.stack[node]]] : []],
      ["scope", scope >= 0 ? [this.scopePath(scope) + (model.ranks > 1 ? `, rank ${model.rank[node]}` : "")] : []],
    ];
    if (schedule && !model.isMarker(node)) {
      const from = schedule.start[node], to = schedule.end[node];
      facts.push([`time, ${schedule.policy}`, [`${time(from)} to ${time(to)}, ${time(to - from)}`
        + (schedule.critical[node] ? ", on the critical chain" : "")]]);
      const cause = model.causes[schedule.cause[node]];
      const behind = schedule.behind[node] ? node - schedule.behind[node] : -1;
      if (cause) facts.push(["waited for", behind >= 0 ? [`${cause}: `, this.link(behind)] : [cause]]);
    }
    for (const [term, write] of [["reads", 0], ["writes", 1]]) facts.push([term, [this.accessed(node, write)].filter(Boolean)]);
    facts.push(["scratch", [`${number(model.cursor[node])} B held, ${number(model.live[node])} B live`]]);
    if (model.edgeStart) facts.push(["after", this.before(node)]);
    return facts;
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
      told.push(`${st.names[st.name[row]] || `#${row}`} ${model.layouts[model.accesses.layout[i]]} @ ${place}`);
    }
    return told.join(", ");
  }

  // The nodes that this one has an edge from, with the reasons.
  before(node) {
    const { model } = this;
    const links = [];
    const first = model.edgeStart[node], last = model.edgeStart[node + 1];
    for (let i = first; i < Math.min(last, first + 12); i++) {
      const kind = model.edges.kind[i];
      links.push(this.link(node - model.edges.back[i]), ` ${model.reasons[kind >> 1]}${kind & 1 ? " (recycled)" : ""} `);
    }
    if (last - first > 12) links.push(`and ${number(last - first - 12)} more`);
    return links;
  }
}
