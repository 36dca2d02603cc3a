// One selection for the whole page: a set of nodes, one of them in the inspector. Panels are told when it changes.

class Selection {
  constructor(model) {
    this.model = model;
    this.nodes = new Int32Array(0);
    this.at = -1;
    this.what = "";
    this.mask = new Uint8Array(model.count);
    this.storages = new Set();
    this.schedule = () => null; // the one shown
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
    const schedule = this.schedule();
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
    for (const listener of this.listeners) listener(whole);
  }

  nodesWhere(test) {
    const found = [];
    for (let node = 0; node < this.model.count; node++) if (test(node)) found.push(node);
    return Int32Array.from(found);
  }
}
