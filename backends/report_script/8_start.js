// Put the page together.

// System, light or dark: the sheets' own rules for dark pages are switched, so that there is one set of them.
class Theme {
  constructor(pictures) {
    this.rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
      .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme"));
    this.own = this.rules.map((rule) => rule.media.mediaText);
    this.pictures = pictures;
    this.at = 0;
    this.button = document.querySelector('[data-act="theme"]');
    this.button.addEventListener("click", () => this.next());
  }

  next() { this.set((this.at + 1) % 3); }

  set(at) {
    this.at = at;
    const name = ["auto", "light", "dark"][at];
    this.rules.forEach((rule, i) => { rule.media.mediaText = at === 0 ? this.own[i] : at === 2 ? "screen" : "not all"; });
    document.documentElement.style.colorScheme = at === 0 ? "" : name;
    this.button.textContent = name;
    for (const picture of this.pictures()) picture.redraw ? picture.redraw() : picture.drawMap?.();
  }
}

// Bars between panes that are dragged, or moved by arrow keys.
function splitters() {
  const root = document.documentElement;
  for (const bar of document.querySelectorAll(".split")) {
    const across = bar.dataset.split === "left";
    const place = (x, y) => {
      const main = document.getElementById("main").getBoundingClientRect();
      const strip = document.querySelector(".strip").getBoundingClientRect();
      if (across) root.style.setProperty("--left", `${Math.min(Math.max(100 * (x - main.left) / main.width, 15), 70)}%`);
      else if (bar.dataset.split === "low") root.style.setProperty("--low", `${Math.min(Math.max(main.bottom - y, 60), main.bottom - strip.bottom - 120)}px`);
      else root.style.setProperty("--top", `${Math.min(Math.max(y - strip.bottom, 150), main.bottom - strip.bottom - 120)}px`);
    };
    bar.addEventListener("pointerdown", (event) => bar.setPointerCapture(event.pointerId));
    bar.addEventListener("pointermove", (event) => { if (event.buttons) place(event.clientX, event.clientY); });
    bar.addEventListener("dblclick", () => root.style.removeProperty(`--${bar.dataset.split}`));
    bar.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -24, ArrowUp: -24, ArrowRight: 24, ArrowDown: 24 }[event.key];
      if (!by) return;
      event.preventDefault();
      const box = bar.getBoundingClientRect();
      place(box.left + by, box.top + by);
    });
  }
}

// The tabs of the dock; without the workbench all of them stand one below the other.
class Tabs {
  constructor() {
    for (const link of document.querySelectorAll("[data-open]")) {
      link.addEventListener("click", (event) => {
        if (getComputedStyle(document.querySelector("#dock nav")).display === "none") return; // below one another: a link leads there
        event.preventDefault();
        this.open(link.dataset.open);
      });
    }
    this.big = document.querySelector('[data-act="big"]');
    this.big.addEventListener("click", () => this.grow());
    this.links = [...document.querySelectorAll("[data-tab]")];
    for (const link of this.links) link.addEventListener("click", (event) => { event.preventDefault(); this.open(link.dataset.tab); });
    this.open((this.links.find((link) => link.ariaCurrent === "true") ?? this.links[0]).dataset.tab);
  }

  grow() {
    const big = document.documentElement.classList.toggle("big");
    this.big.setAttribute("aria-pressed", String(big));
    this.big.textContent = big ? "shorter" : "taller";
  }

  open(name) {
    for (const link of this.links) {
      const here = link.dataset.tab === name;
      link.setAttribute("aria-current", String(here));
      document.getElementById(link.dataset.tab).classList.toggle("open", here);
    }
  }
}

async function start() {
  document.documentElement.classList.add("live");
  const tabs = new Tabs();
  splitters();
  const model = await readModel();
  const selection = new Selection(model);
  const timeline = model.schedules.length ? new Timeline(model, selection) : null;
  selection.schedule = () => timeline && timeline.schedule;
  const scratch = document.getElementById("scratch-canvas") ? new Scratch(model, selection, timeline) : null;
  if (timeline && timeline.schedule.rows.length > 16) document.documentElement.style.setProperty("--top", "60%");
  if (timeline && model.ranks > 2) { timeline.reveal(scratch ? scratch.rank : 0); timeline.redraw(); }
  const elements = new Elements(model, selection);
  const inspector = new Inspector(model, selection, timeline ?? { schedule: null, zoomTo() {} });
  inspector.elements = elements;
  if (timeline) {
    elements.previews.push((nodes) => timeline.hint(nodes));
    timeline.pointed = (node) => elements.pointAt(node);
  }
  const graph = new GraphView(model, selection);
  const search = new Search(model, selection, elements);
  const theme = new Theme(() => [timeline, timeline && timeline.axisAbove, scratch, graph].filter(Boolean));

  const policies = document.getElementById("timeline-policy");
  const follow = () => {
    const { schedule } = timeline, at = model.schedules.indexOf(schedule);
    elements.costs(schedule);
    inspector.show();
    search.known = null; // it tells each line's share
    const total = schedule.causes.reduce((sum, [, ps]) => sum + ps, 0);
    document.getElementById("causes-of").textContent = `of ${schedule.policy}`;
    document.getElementById("causes").replaceChildren(...schedule.causes.slice(0, 4).map(([cause, ps, kind, colour]) => {
      const bar = make("i", kind);
      bar.style.backgroundColor = colour;
      bar.style.width = `${100 * ps / Math.max(total, 1)}%`;
      return make("li", "", make("span", "", cause), make("span", "mini", bar), make("b", "", `${(100 * ps / Math.max(total, 1)).toFixed(1)} %`), make("span", "", time(ps)));
    }));
    for (const rung of document.querySelectorAll("[data-policy]")) rung.setAttribute("aria-pressed", String(Number(rung.dataset.policy) === at));
  };
  const choose = (at) => { policies.value = String(at); policies.dispatchEvent(new Event("change")); };
  if (timeline) {
    policies.addEventListener("change", follow);
    for (const rung of document.querySelectorAll("[data-policy]")) rung.addEventListener("click", () => choose(Number(rung.dataset.policy)));
    follow();
    // The graph opens at the box with the most of the critical chain.
    const { chain, start: from, end: to } = timeline.schedule, sums = new Map();
    for (const node of model.boxes ? chain : []) sums.set(model.boxes[node], (sums.get(model.boxes[node]) ?? 0) + to[node] - from[node]);
    graph.focus = [...sums].sort((a, b) => b[1] - a[1])[0]?.[0];
  }
  elements.openAtHottest();

  const buttons = {
    in: (view) => view.zoom(0.5), out: (view) => view.zoom(2), left: (view) => view.pan(-0.3),
    right: (view) => view.pan(0.3), fit: (view) => view.fit(),
  };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const [of, act] = button.dataset.zoom.split(" ");
    button.addEventListener("click", () => buttons[act](of === "timeline" ? timeline.view : scratch.view));
  }
  const help = document.getElementById("help");
  help.querySelector("dl").append(...KEYS.flatMap(([key, words]) => [make("dt", "", make("kbd", "", key)), make("dd", "", words)]));
  document.querySelector('[data-act="help"]').addEventListener("click", () => help.showModal());

  // The neighbour of the selected node on its lane.
  const beside = (by) => {
    if (!timeline || selection.node < 0) return;
    const row = timeline.rowOf(selection.node), at = timeline.schedule.position[selection.node] + by;
    if (row && row.from <= at && at < row.to) selection.select(timeline.schedule.order[at]);
  };
  const keys = {
    "/": () => { search.field.focus(); search.field.select(); }, "?": () => help.showModal(), h: () => elements.nextHot(), t: () => theme.next(),
    p: () => { if (timeline) choose((model.schedules.indexOf(timeline.schedule) + 1) % model.schedules.length); },
    "[": () => selection.step(-1), "]": () => selection.step(1), ",": () => beside(-1), ".": () => beside(1),
    b: () => { const node = selection.node < 0 ? -1 : inspector.behind(selection.node); if (node >= 0) selection.select(node); },
    z: () => { if (timeline && selection.node >= 0) timeline.zoomTo(selection.node); },
    w: () => timeline?.view.zoom(0.6), s: () => timeline?.view.zoom(1 / 0.6), a: () => timeline?.view.pan(-0.2), d: () => timeline?.view.pan(0.2),
    g: () => tabs.grow(),
    0: () => timeline?.view.fit(), f: () => { tabs.open("graph"); if (graph.svg) requestAnimationFrame(() => graph.fit()); },
  };
  addEventListener("keydown", (event) => {
    if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { selection.clear(); timeline?.cursor.clear(); return; }
    const tab = tabs.links[Number(event.key) - 1];
    if (tab) { tabs.open(tab.dataset.tab); return; }
    if (!keys[event.key] || event.defaultPrevented) return;
    event.preventDefault();
    keys[event.key]();
  });
  const wanted = /^#node=(\d+)$/.exec(location.hash);
  if (wanted && Number(wanted[1]) < model.count) selection.select(Number(wanted[1]));
  // For programs that look at the page: what is selected, and where things are.
  globalThis.kernscope = { model, selection, timeline, scratch, elements, inspector, graph, search, tabs, theme };
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("failed").hidden = false;
  document.getElementById("failed").append(` ${error}`);
  throw error;
});
