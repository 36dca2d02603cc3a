// Times, sizes and shares in words; round numbers of axes; elements.

const UNITS = [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3], ["ps", 1]];
function time(ps) {
  if (ps === 0) return "0 ns";
  const [unit, size] = UNITS.find(([, one]) => Math.abs(ps) >= one) ?? UNITS[4];
  return `${Number((ps / size).toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 3 })} ${unit}`;
}
const SIZES = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
function bytes(value) {
  const [unit, size] = SIZES.find(([, one]) => value >= one) ?? ["B", 1];
  return `${Number((value / size).toPrecision(4))} ${unit}`;
}
const percent = (part, whole) => (part > 0 && part < whole / 100 ? "<1 %" : `${Math.round(100 * part / Math.max(whole, 1))} %`);
const number = (value) => value.toLocaleString("en-US");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

// Round instants of an axis, as in the Gantt charts.
function ticks(from, to, most) {
  let step = 1;
  while ((to - from) / step > most) {
    const factor = [2, 5, 10].find((one) => (to - from) / (step * one) <= most) ?? 10;
    step *= factor;
  }
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// Round addresses of an axis.
function byteTicks(top, most) {
  let step = 16;
  while (top / step > most) step *= 2;
  const found = [];
  for (let at = 0; at <= top; at += step) found.push(at);
  return found;
}

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}
