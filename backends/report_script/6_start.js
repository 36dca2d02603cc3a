// Put the page together.

async function start() {
  const model = await readModel();
  const selection = new Selection(model);
  const timeline = model.schedules.length ? new Timeline(model, selection) : null;
  const scratch = document.getElementById("scratch-canvas") ? new Scratch(model, selection, timeline) : null;
  const elements = new Elements(model, selection);
  const inspector = new Inspector(model, selection, timeline ?? { schedule: null, zoomTo() {} });

  const buttons = {
    in: (view) => view.zoom(0.5), out: (view) => view.zoom(2), left: (view) => view.pan(-0.3),
    right: (view) => view.pan(0.3), fit: (view) => view.fit(),
  };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const [of, act] = button.dataset.zoom.split(" ");
    button.addEventListener("click", () => buttons[act](of === "timeline" ? timeline.view : scratch.view));
  }
  const goTo = document.getElementById("go-to");
  goTo.addEventListener("submit", (event) => {
    event.preventDefault();
    const field = goTo.querySelector("input");
    const node = Number(field.value.replace(/^\s*%/, ""));
    const known = Number.isInteger(node) && node >= 0 && node < model.count && field.value.trim() !== "";
    field.setCustomValidity(known ? "" : `a node is a number from 0 to ${model.count - 1}`);
    field.reportValidity();
    if (known) selection.select(node);
  });
  goTo.querySelector("input").addEventListener("input", (event) => event.target.setCustomValidity(""));
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "Escape") selection.clear();
    else if (event.key === "[") selection.step(-1);
    else if (event.key === "]") selection.step(1);
    else if (event.key === "z" && timeline && selection.node >= 0) timeline.zoomTo(selection.node);
  });
  const wanted = /^#node=(\d+)$/.exec(location.hash);
  if (wanted && Number(wanted[1]) < model.count) selection.select(Number(wanted[1]));
  // For programs that look at the page: what is selected, and where things are.
  globalThis.kernscope = { model, selection, timeline, scratch, elements, inspector };
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("failed").hidden = false;
  document.getElementById("failed").append(` ${error}`);
  throw error;
});
