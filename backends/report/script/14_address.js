// What is shown, kept in the page's address, so that a link leads to it: the node, the policy, the part of the time, and
// the places of the splitters. What is as it was when the page opened is not in it.

const WRITTEN_AFTER_MS = 150;

class Address {
  constructor({ model, selection, timeline, splitters, choose }) {
    Object.assign(this, { model, selection, timeline, splitters, choose });
    this.read();
    for (const one of [selection, splitters, ...(timeline ? [timeline.view] : [])]) one.listeners.push(() => this.changed());
    addEventListener("hashchange", () => this.read());
  }

  // A policy that is not embedded, a node that is not there and the like count for nothing.
  read() {
    const said = new URLSearchParams(location.hash.slice(1)), { model, timeline } = this;
    const whole = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : -1);
    const policy = model.schedules.findIndex((one) => one.policy === said.get("policy"));
    if (policy >= 0) this.choose(policy);
    for (const name of Object.keys(LEAST)) {
      const share = Number.parseFloat(said.get(name));
      if (Number.isFinite(share)) this.splitters.set(name, share);
    }
    const node = whole(said.get("node"));
    if (node >= 0 && node < model.count && node !== this.selection.node) this.selection.select(node);
    const [from, to] = (said.get("window") ?? "").split("-").map(whole);
    if (timeline && from >= 0 && to > from) timeline.view.set(from, to);
  }

  changed() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.write(), WRITTEN_AFTER_MS);
  }

  get text() {
    const { model, selection, timeline, splitters } = this, said = [];
    if (selection.node >= 0) said.push(`node=${selection.node}`);
    if (timeline) {
      const { schedule, view } = timeline;
      if (schedule !== model.schedules[0]) said.push(`policy=${encodeURIComponent(schedule.policy)}`);
      if (!view.all) said.push(`window=${Math.round(view.from)}-${Math.round(view.to)}`);
    }
    for (const [name, share] of splitters.places) said.push(`${name}=${share.toFixed(1)}`);
    return said.join("&");
  }

  // Inside another page there may be no address to change: then there is no link.
  write() {
    const { text } = this;
    if (!text && !location.hash.includes("=")) return; // an anchor stays
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  }
}
