"""Draw the pictures that the README and the documentation show: ``python docs/make_pictures.py``.

The screenshots take Chromium with chromedriver on PATH, and the package selenium (the extra ``test``).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel as prefill_long

IMAGES = Path(__file__).parent / "images"
#: What a slice or a box tells when pointed at: a picture inside a page cannot be pointed at.
TOLD = re.compile(r'<title>.*?</title>| data-[a-z-]+="[^"]*"', re.DOTALL)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def main() -> None:
    """Write them all."""
    IMAGES.mkdir(exist_ok=True)
    graph = ks.trace(flash_attention.launch("2k"))
    ladder = ks.compare(graph)
    ks.draw(graph, IMAGES / "flash_attention.svg", schedule=ladder["list"].schedule)
    schedules = [row.schedule for row in ladder if row.schedule is not None]
    timelines = IMAGES / "flash_attention_timelines.svg"
    ks.timeline(schedules, timelines)
    text = re.sub(r'(\.\d)\d+(?=")', r"\1", TOLD.sub("", timelines.read_text(encoding="utf-8")))
    timelines.write_text(text.replace('"></rect>', '"/>'), encoding="utf-8")
    large = ks.trace(prefill_long.launch("8k"))
    ks.draw(large, IMAGES / "prefill_long.svg", schedule=ks.schedule(large), reduce=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        ks.report(ks.trace(prefill_long.launch("small")), page, launch=prefill_long.launch("small"))
        photograph(page)


def photograph(page: Path) -> None:
    """The report, light and untouched, and dark with a node selected."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={page.parent / 'profile'}"):
        options.add_argument(flag)
    program, driver_program = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver_program is None:
        raise SystemExit("chromium and chromedriver have to be on PATH")
    options.binary_location = program
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_program))
    try:
        size = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        WebDriverWait(driver, 30).until(lambda d: d.execute_script("return document.documentElement.dataset.ready"))
        take(driver, IMAGES / "report_light.png")
        driver.execute_script("kernscope.theme.set(2); kernscope.elements.nextHot()")
        take(driver, IMAGES / "report_selected_dark.png")
    finally:
        driver.quit()


def take(driver: webdriver.Chrome, path: Path) -> None:
    """A screenshot, once everything is drawn."""
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[arguments.length - 1]))")
    driver.save_screenshot(str(path))


if __name__ == "__main__":
    main()
