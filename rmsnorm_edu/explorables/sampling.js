// Rows of features, and how far the RMS of their first k is from that of all n: the arithmetic
// of "partial estimate". Pure: `node --test` runs it against vectors from the package.
export const SIZES = [4, 8, 16, 32, 50, 64, 100, 128, 256, 512, 768, 1024, 2048, 4096];
// The shares that the slider stops at, in percent: finer where they are small.
const stops = (low, high, step) =>
  Array.from({ length: Math.round((high - low) / step) }, (_, i) => low + i * step);
export const PERCENTS = [...stops(1, 10, 0.25), ...stops(10, 30, 0.5), ...stops(30, 101, 1)];
export const shareOf = (percent) => +(percent / 100).toFixed(4);
const POOL = 2 ** 20; // numbers drawn: rows of n of them, at most ROWS
const ROWS = 2000;
const SEED = 2 * POOL; // where the stream of uniform numbers begins
const FREEDOM = 3; // of Student's t, the heavy tails
export const OUTLIER = 30;
export const placeOf = (n) => Math.floor(n / 3); // of the outlier, counted from 0

// k features of n: the paper's ceiling of the decimal, or the floor of the float64 product.
export function partialSize(n, p, rounding) {
  if (rounding === "floor") return Math.floor(n * p);
  const [whole, decimals = ""] = String(p).split(".");
  const one = 10 ** decimals.length; // integers to here, so the ceiling is that of the decimal
  return Math.ceil((n * +(whole + decimals)) / one);
}

// --- the derived law, for independent normal features

const SERIES = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360];

// log Γ(x), x > 0, by Stirling's series from 10 on: its next term is below 1e-15.
export function lgamma(x) {
  if (x < 10) return lgamma(x + 1) - Math.log(x);
  const tail = SERIES.reduce((sum, c, i) => sum + c / x ** (2 * i + 1), 0);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + tail;
}

// E[RMS of k normal features of variance 1] = √(2/k) Γ((k + 1)/2) / Γ(k/2).
export const meanRms = (k) => Math.sqrt(2 / k) * Math.exp(lgamma((k + 1) / 2) - lgamma(k / 2));

// Mean and spread of r = RMS_k / RMS: its mean square is 1, whatever the independent features.
export function derived(n, k) {
  const mean = k === n ? 1 : meanRms(k) / meanRms(n);
  return { mean, sd: Math.sqrt(Math.max(0, 1 - mean * mean)), rule: 1 / Math.sqrt(2 * k) };
}

// The density of r, k < n: r² k/n is a Beta(k/2, (n − k)/2) variable.
export function density(n, k, r) {
  const [a, b, u] = [k / 2, (n - k) / 2, (k / n) * r * r];
  if (r <= 0 || u >= 1) return 0;
  const beta = lgamma(a) + lgamma(b) - lgamma(n / 2);
  return (2 * u / r) * Math.exp((a - 1) * Math.log(u) + (b - 1) * Math.log1p(-u) - beta);
}

// --- seeded rows

// Number i of a stream in (0, 1): MurmurHash3's finalizer (Appleby, public domain) on a counter.
export function uniform(i) {
  let h = Math.imul(i + 1, 0x9e3779b9);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (((h ^ (h >>> 16)) >>> 0) + 0.5) / 2 ** 32;
}

const pools = new Map();

// The squares of all numbers drawn: of Student's t (Bailey 1994), or normal (Box and Muller 1958).
function pool(isHeavy) {
  if (!pools.has(isHeavy)) {
    const squares = new Float64Array(POOL);
    for (let i = 0; i < POOL; i++) {
      const [u, v] = [uniform(SEED + i), uniform(SEED + POOL + i)];
      const cos = Math.cos(2 * Math.PI * v);
      const q = isHeavy ? FREEDOM * (u ** (-2 / FREEDOM) - 1) : -2 * Math.log(u);
      squares[i] = q * cos * cos;
    }
    pools.set(isHeavy, squares);
  }
  return pools.get(isHeavy);
}

const CHANGED = {
  largest: (row) => row.sort().reverse(),
  smallest: (row) => row.sort(),
  outlier(row) {
    row[placeOf(row.length)] *= OUTLIER ** 2;
    return row;
  },
};

// Sorting is slow, and sorted rows differ little: a quarter of them is enough.
const rowsOf = (features, n) =>
  Math.min(ROWS, Math.floor((features.endsWith("est") ? POOL / 4 : POOL) / n));

// For every k that the slider can give: the ratio RMS_k / RMS of each row, in float64.
export function ratios(features, n) {
  const all = pool(features === "heavy");
  const ks = [...new Set(PERCENTS.map((c) => partialSize(n, shareOf(c), "ceil")))];
  const count = rowsOf(features, n);
  const found = ks.map(() => new Float64Array(count));
  const change = CHANGED[features];
  for (let i = 0; i < count; i++) {
    const part = all.subarray(i * n, (i + 1) * n);
    const row = change ? change(part.slice()) : part;
    let [sum, from] = [0, 0];
    for (let j = 0; j < ks.length; j++) {
      for (; from < ks[j]; from++) sum += row[from];
      found[j][i] = sum;
    }
    for (let j = 0; j < ks.length; j++) found[j][i] = Math.sqrt((found[j][i] / ks[j]) / (sum / n));
  }
  return new Map(ks.map((k, j) => [k, found[j]]));
}

export function spread(values) {
  let [sum, square] = [0, 0];
  for (const v of values) sum += v;
  const mean = sum / values.length;
  for (const v of values) square += (v - mean) * (v - mean);
  return { mean, sd: Math.sqrt(square / values.length) };
}

// What the output is multiplied by, 1/r: the ends between which nine rows of ten lie.
export function outputs(values) {
  const sorted = Float64Array.from(values, (r) => 1 / r).sort();
  const [low, high] = [0.05, 0.95].map((q) => sorted[Math.round(q * (sorted.length - 1))]);
  return { low, high };
}

// The state's numbers. `measured` is what `ratios` gave for its features and n.
export function answers(measured, { n, p, features }) {
  const [k, floor] = ["ceil", "floor"].map((rounding) => partialSize(n, p, rounding));
  const values = measured.get(k);
  return {
    n, p, features, k, floor, values, law: derived(n, k), seen: spread(values),
    out: outputs(values),
  };
}

// How many rows fall in each bin of this width from 0 on, as a density.
export function histogram(values, width, bins) {
  const counts = new Array(bins).fill(0);
  for (const v of values) if (v < bins * width) counts[Math.floor(v / width)] += 1;
  return counts.map((c) => c / (values.length * width));
}

// --- in words

const percent = (part) => {
  const size = 100 * Math.abs(part);
  return `${size >= 10 ? Math.round(size) : size.toPrecision(size < 1 ? 1 : 2)}%`;
};

// How far a factor of the output is from 1: "16%", "22 times".
function amount(factor) {
  const times = Math.max(factor, 1 / factor);
  if (times < 2) return percent(factor - 1);
  return `${times < 10 ? times.toPrecision(2) : Math.round(times)} times`;
}

// "are between 2.2 times and 2.3 times too small", "lie between 12% too small and 15% too large".
export function range({ low, high }) {
  if (low < 1 && high > 1) {
    return `lie between ${amount(low)} too small and ${amount(high)} too large`;
  }
  const ends = [...new Set((low < 1 ? [high, low] : [low, high]).map(amount))];
  const between = ends.length > 1 ? `between ${ends.join(" and ")}`
    .replace(/ times( and .* times)$/, "$1") : ends[0];
  return `are ${between} too ${low < 1 ? "small" : "large"}`;
}

const features = (k) => (k === 1 ? "feature" : "features");

// What is wrong with the choice of k, if anything is.
function rounding({ n, p, k, floor }) {
  if (floor === 0) {
    return `int(${n} × ${p}) is 0: the 2019 code divides by zero. The paper’s ⌈np⌉ is ${k}. `;
  }
  const isTrap = Number.isInteger(+(n * p).toPrecision(12)) && floor !== k;
  return isTrap ? `In float64 ${n} × ${p} is just below ${k}: the 2019 code takes ${floor}. ` : "";
}

const first = (k) => (k === 1 ? "The first one is" : `The first ${k} are`);
const STORIES = {
  normal({ n, k }) {
    if (k < 8) return "So few are hardly a sample.";
    return 4 * k > n ? "The error falls to 0 as p goes to 100%."
      : "Four times the features would halve the error, or better.";
  },
  heavy: () => "A few large features carry the row: whether they are among the first is luck.",
  largest: ({ k }) => `${first(k)} no sample: the largest come first.`,
  smallest: ({ k }) => `${first(k)} no sample: the smallest come first.`,
  outlier({ n, k }) {
    const place = placeOf(n);
    const holds = place < k ? "hold it, and it counts for too much" : "miss it";
    return `The outlier is feature ${place + 1}: the first ${k === 1 ? "one misses it"
      : `${k} ${holds}`}.`;
  },
};

export function finding(last) {
  const { n, k, floor, out } = last;
  const odd = rounding(last);
  if (k === n) return `${odd}All ${n} features: the estimate is the RMS itself.`;
  const story = odd ? "" : ` ${STORIES[last.features](last)}`;
  return `${odd}With ${k} ${features(k)} of ${n}, nine outputs of ten ${range(out)}.${story}`;
}
