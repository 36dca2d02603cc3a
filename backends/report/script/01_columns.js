// Packed columns become typed arrays again; what is sought in sorted ones.

async function unpack(column) {
  const text = atob(column.data);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const kinds = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };
  const stored = new kinds[column.type](bytes);
  if (!column.delta) return stored;
  let low = 0, high = 0, sum = 0;
  for (let i = 0; i < stored.length; i++) {
    sum += stored[i];
    if (sum < low) low = sum; else if (sum > high) high = sum;
  }
  const fits = low >= -2147483648 && high <= 2147483647;
  const values = fits ? new Int32Array(stored.length) : new Float64Array(stored.length);
  sum = 0;
  for (let i = 0; i < stored.length; i++) values[i] = sum += stored[i];
  return values;
}

const isPacked = (value) => value !== null && typeof value === "object" && typeof value.data === "string";

// The same document with every packed column in it unpacked.
async function unpackAll(value) {
  if (isPacked(value)) return unpack(value);
  if (Array.isArray(value)) return Promise.all(value.map(unpackAll));
  if (value === null || typeof value !== "object") return value;
  const entries = await Promise.all(Object.entries(value).map(async ([key, one]) => [key, await unpackAll(one)]));
  return Object.fromEntries(entries);
}

function starts(counts) {
  const sums = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) sums[i + 1] = sums[i] + counts[i];
  return sums;
}

// The first index in [low, high) whose value is at least (above: more than) the one sought; high where there is none.
function lowerBound(values, low, high, sought) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < sought) low = middle + 1; else high = middle;
  }
  return low;
}
function upperBound(values, low, high, sought) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= sought) low = middle + 1; else high = middle;
  }
  return low;
}
// The same of any condition that holds from some index on.
function firstWhere(count, holds) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}
