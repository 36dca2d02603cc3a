// Theme, splitters and tabs.

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

// Bars between panes that are dragged, or moved by arrow keys; a double click puts one back. Their places are shares of
// the workbench, in percent, as the properties --left, --top and --low of the page.
const SPLIT_STEP = 24, LEAST = { left: 15, top: 20, low: 8 }, MOST = { left: 70, top: 85, low: 80 };

class Splitters {
  constructor() {
    this.places = new Map(); // those that were moved
    this.listeners = [];
    for (const bar of document.querySelectorAll(".split")) this.listen(bar, bar.dataset.split);
  }

  listen(bar, name) {
    bar.addEventListener("pointerdown", (event) => bar.setPointerCapture(event.pointerId));
    bar.addEventListener("pointermove", (event) => { if (event.buttons) this.set(name, this.share(name, event.clientX, event.clientY)); });
    bar.addEventListener("dblclick", () => this.set(name, null));
    bar.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -SPLIT_STEP, ArrowUp: -SPLIT_STEP, ArrowRight: SPLIT_STEP, ArrowDown: SPLIT_STEP }[event.key];
      if (!by) return;
      event.preventDefault();
      const box = bar.getBoundingClientRect();
      this.set(name, this.share(name, box.left + by, box.top + by));
    });
  }

  // The place of a bar that is at some point of the window.
  share(name, x, y) {
    const main = document.getElementById("main").getBoundingClientRect();
    const top = document.querySelector(".strip").getBoundingClientRect().bottom;
    if (name === "left") return 100 * (x - main.left) / main.width;
    return name === "low" ? 100 * (main.bottom - y) / (main.bottom - top) : 100 * (y - top) / main.height;
  }

  set(name, share) {
    const { style } = document.documentElement;
    if (share === null) {
      this.places.delete(name);
      style.removeProperty(`--${name}`);
    } else {
      this.places.set(name, Math.min(Math.max(share, LEAST[name]), MOST[name]));
      style.setProperty(`--${name}`, `${this.places.get(name).toFixed(1)}%`);
    }
    for (const listener of this.listeners) listener();
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
    const asked = this.links.find((link) => link.dataset.tab === location.hash.slice(1));
    this.open((asked ?? this.links.find((link) => link.ariaCurrent === "true") ?? this.links[0]).dataset.tab);
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
