"""A report page in a real browser: opened, clicked, zoomed, and asked what it shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["Browser"]

#: How many pixels of a canvas have the colour of what is selected.
_MARKED = """
const canvas = document.getElementById(arguments[0]);
const mark = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
const [r, g, b] = [1, 3, 5].map((at) => parseInt(mark.slice(at, at + 2), 16));
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let found = 0;
for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found++;
return found;
"""

#: By these codes the browser's own keys are known (a dialog closes, a form is sent).
_KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


@attrs.frozen
class Browser:
    """A browser and the page in it."""

    driver: Chrome

    def open(self, page: Path, *, wait_s: float = 30.0, size: tuple[int, int] | None = None, hash: str = "") -> None:
        """Open a page, in a window of a size, and wait until its script is ready. A narrow window is a phone's."""
        self.driver.get("about:blank")
        self.errors()  # of the page before
        width, height = size or (0, 0)  # 0: the window's own
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": 0 < width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get(f"{page.as_uri()}#{hash}" if hash else page.as_uri())
        WebDriverWait(self.driver, wait_s).until(lambda _: self.run("return document.documentElement.dataset.ready"))

    def run(self, script: str, *values: Any) -> Any:
        """What a function's body returns on the page."""
        return self.driver.execute_script(script, *values)  # type: ignore[no-untyped-call]

    def errors(self) -> list[str]:
        """What the page has logged since the last call. (What the tests' own look at pixels costs is no news.)"""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if "willReadFrequently" not in entry["message"]]

    def settle(self) -> None:
        """Wait until what was changed is drawn."""
        self.driver.execute_async_script(  # type: ignore[no-untyped-call]
            "requestAnimationFrame(() => requestAnimationFrame(arguments[arguments.length - 1]))"
        )

    def until(self, holds: Callable[[], bool], *, wait_s: float = 5.0) -> None:
        """Wait until something holds: a wheel's event comes in a frame of its own."""
        WebDriverWait(self.driver, wait_s, poll_frequency=0.05).until(lambda _: holds())

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A true mouse event at a place of the window."""
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def click(self, place: dict[str, float]) -> None:
        """A true click."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
            self.mouse(kind, place["x"], place["y"], **pressed)
        self.settle()

    def double_click(self, place: dict[str, float]) -> None:
        """A true double click."""
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, place["x"], place["y"], button="left", clickCount=count)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float], *, shift: bool = False) -> None:
        """A true drag with the left button, over ten places between."""
        more = {"button": "left", "buttons": 1, "modifiers": 8 if shift else 0}
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, clickCount=1, **more)
        for step in range(1, 11):
            x, y = (a + (b - a) * step / 10 for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, **more)
        self.mouse("mouseReleased", *end, clickCount=1, **more)
        self.settle()

    def keys(self, *names: str) -> None:
        """True key strokes: a character, or a key's name."""
        for name in names:
            text = {"text": name} if len(name) == 1 else {"text": "\r"} if name == "Enter" else {}
            code = {"windowsVirtualKeyCode": _KEY_CODES[name]} if name in _KEY_CODES else {}
            for kind in ("keyDown", "keyUp"):
                self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": name, **text, **code})
        self.settle()

    def type(self, words: str) -> None:
        """Text into the field in focus."""
        self.driver.execute_cdp_cmd("Input.insertText", {"text": words})
        self.settle()

    def choose(self, selector: str, value: str) -> None:
        """Another value of a list to choose from."""
        self.run(
            "const list = document.querySelector(arguments[0]); list.value = arguments[1];"
            "list.dispatchEvent(new Event('change'))",
            selector,
            value,
        )
        self.settle()

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is, in the window."""
        box: dict[str, float] = self.run(
            "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector
        )
        return box

    def show(self, selector: str) -> None:
        """Scroll an element to the window's top, below the navigation."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'start', behavior: 'instant'})", selector)
        self.settle()

    def bring(self, node: int) -> None:
        """Scroll the page so that a node's row of the timeline is in its upper part, where nothing covers it."""
        self.run("scrollBy({top: kernscope.timeline.place(arguments[0]).y - 200, behavior: 'instant'})", node)
        self.settle()

    def place_of_node(self, node: int) -> dict[str, float]:
        """Where the timeline shows a node, in the window."""
        place: dict[str, float] = self.run("return kernscope.timeline.place(arguments[0])", node)
        return place

    def selected(self) -> int:
        """The node in the inspector; -1: none."""
        return int(self.run("return kernscope.selection.node"))

    def selected_nodes(self) -> list[int]:
        """All nodes selected."""
        return [int(node) for node in self.run("return Array.from(kernscope.selection.nodes)")]

    def text(self, selector: str) -> str:
        """The visible text of an element."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def marked_pixels(self, canvas: str) -> int:
        """How many pixels of a canvas are in the colour of the selection."""
        return int(self.run(_MARKED, canvas))
