// Put the page together.

const KEYS = [
  ["/", "find an operation, tensor, scope, line or %node"], ["h", "next of the hottest lines"],
  ["p", "next policy"], ["[ ]", "previous, next of the selected nodes"], [", .", "previous, next on its engine"],
  ["b", "what it waited for"], ["z", "zoom the timeline to it"], ["w s a d", "timeline: in, out, earlier, later"], ["0", "timeline: show all"],
  ["f", "graph: show all"], ["g", "the whole height for the graph or another tab"], ["1 - 8", "tabs"], ["t", "theme"], ["Esc", "select nothing"],
  ["Shift drag", "measure a span: who is busy in it"], ["Ctrl wheel", "zoom where the pointer is"],
];

const CAUSES = 4;

// The critical chain by cause, in the strip.
function showCauses({ policy, causes }) {
  const total = Math.max(causes.reduce((sum, [, ps]) => sum + ps, 0), 1);
  document.getElementById("causes-of").textContent = `of ${policy}`;
  document.getElementById("causes").replaceChildren(...causes.slice(0, CAUSES).map(([cause, ps, kind, colour]) => {
    const bar = make("i", kind), share = make("b", "", `${(100 * ps / total).toFixed(1)} %`);
    bar.style.backgroundColor = colour;
    bar.style.width = `${100 * ps / total}%`;
    return make("li", "", make("span", "", cause), make("span", "mini", bar), share, make("span", "", time(ps)));
  }));
}

// The buttons beside a picture's heading.
function zoomButtons(viewOf) {
  const acts = {
    in: (view) => view.zoom(0.5), out: (view) => view.zoom(2), left: (view) => view.pan(-0.3),
    right: (view) => view.pan(0.3), fit: (view) => view.fit(),
  };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const [of, act] = button.dataset.zoom.split(" ");
    button.addEventListener("click", () => acts[act](viewOf(of)));
  }
}

// The keys of the whole page; those of a field, of a dialog and of a picture in focus come first.
function listenToKeys(keys, tabs) {
  addEventListener("keydown", (event) => {
    if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.defaultPrevented) return;
    const tab = tabs.links[Number(event.key) - 1];
    if (tab) { tabs.open(tab.dataset.tab); return; }
    if (!keys[event.key]) return;
    if (event.key !== "Escape") event.preventDefault();
    keys[event.key]();
  });
}

async function start() {
  document.documentElement.classList.add("live");
  const tabs = new Tabs(), splitters = new Splitters();
  const model = await readModel();
  const selection = new Selection(model);
  const timeline = model.schedules.length ? new Timeline(model, selection) : null;
  selection.schedule = () => timeline && timeline.schedule;
  const scratch = document.getElementById("scratch-canvas") ? new Scratch(model, selection, timeline) : null;
  if (timeline && timeline.rows.length > 16) document.documentElement.classList.add("many-rows");
  if (timeline && model.ranks > 2) { timeline.reveal(scratch ? scratch.rank : 0); timeline.redraw(); }
  const source = new Source(), elements = new Elements(model, selection, source);
  const inspector = new Inspector(model, selection, timeline ?? { schedule: null, zoomTo() {} }, elements);
  if (timeline) {
    elements.previews.push((nodes) => timeline.hint(nodes));
    timeline.pointed = (node) => elements.pointAt(node);
  }
  const graph = new GraphView(model, selection);
  const search = new Search(model, selection, elements);
  const theme = new Theme(() => [timeline, timeline && timeline.axisAbove, scratch, graph].filter(Boolean));

  // Everything that belongs to one policy follows the one shown.
  const chooser = document.getElementById("timeline-policy");
  const choose = (at) => {
    const schedule = model.schedules[at];
    chooser.value = String(at);
    source.show(schedule);
    timeline.show(schedule);
    scratch?.layOut();
    graph.showChain(schedule);
    showCauses(schedule);
    search.known = null; // it tells each line's share
    for (const rung of document.querySelectorAll("[data-policy]")) rung.setAttribute("aria-pressed", String(Number(rung.dataset.policy) === at));
    inspector.show();
  };
  if (timeline) {
    chooser.addEventListener("change", () => choose(Number(chooser.value)));
    for (const rung of document.querySelectorAll("[data-policy]")) rung.addEventListener("click", () => choose(Number(rung.dataset.policy)));
    choose(0);
    graph.focusOn(timeline.schedule);
  }
  source.openAtHottest();
  zoomButtons((of) => (of === "timeline" ? timeline.view : scratch.view));

  const help = document.getElementById("help");
  help.querySelector("dl").append(...KEYS.flatMap(([key, words]) => [make("dt", "", make("kbd", "", key)), make("dd", "", words)]));
  document.querySelector('[data-act="help"]').addEventListener("click", () => help.showModal());

  // The neighbour of the selected node on its lane.
  const beside = (by) => {
    if (!timeline || selection.node < 0) return;
    const row = timeline.rowOf(selection.node), at = timeline.schedule.position[selection.node] + by;
    if (row && row.from <= at && at < row.to) selection.select(timeline.schedule.order[at]);
  };
  const waitedFor = () => (selection.node < 0 ? -1 : inspector.behind(selection.node));
  const nextPolicy = () => choose((model.schedules.indexOf(timeline.schedule) + 1) % model.schedules.length);
  listenToKeys({
    "/": () => { search.field.focus(); search.field.select(); }, "?": () => help.showModal(), h: () => elements.nextHot(), t: () => theme.next(),
    p: () => { if (timeline) nextPolicy(); },
    "[": () => selection.step(-1), "]": () => selection.step(1), ",": () => beside(-1), ".": () => beside(1),
    b: () => { const node = waitedFor(); if (node >= 0) selection.select(node); },
    z: () => { if (timeline && selection.node >= 0) timeline.zoomTo(selection.node); },
    w: () => timeline?.view.zoom(0.6), s: () => timeline?.view.zoom(1 / 0.6), a: () => timeline?.view.pan(-0.2), d: () => timeline?.view.pan(0.2),
    0: () => timeline?.view.fit(), g: () => tabs.grow(),
    f: () => { tabs.open("graph"); if (graph.svg) requestAnimationFrame(() => graph.fit()); },
    Escape: () => { selection.clear(); timeline?.cursor.clear(); },
  }, tabs);
  const address = new Address({ model, selection, timeline, splitters, choose });
  // For programs that look at the page: what is selected, and where things are.
  globalThis.kernscope = { model, selection, timeline, scratch, source, elements, inspector, graph, search, tabs, theme, splitters, address };
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("failed").hidden = false;
  document.getElementById("failed").append(` ${error}`);
  throw error;
});
