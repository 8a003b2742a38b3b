// A GRU and an LSTM as the 2019 code computes them; arrays are flat, a row of features after the
// other. Parameters have its names: W, b, U, Wx, bx, Ux, s1…, and b1… for LayerNorm.
const EPS = 1e-5;
const sigmoid = (z) => 1 / (1 + Math.exp(-z));
const END = Math.log(19); // the logistic function is 0.95 there
export const ENDS = { gates: END, candidate: END / 2, memory: END / 2 };
const KEPT = 300; // runs that are remembered
const LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95];

// Bytes as numbers, counted in a unit.
export const decode = ([unit, text]) =>
  Float64Array.from(Int8Array.from(atob(text), (c) => c.charCodeAt(0)), (v) => v * unit);

// (rows, n) times (n, m), times a factor, plus b where one is given. Four features at a time, which
// is twice as fast: n is a multiple of 4.
export function product(a, w, m, factor = 1, b = null) {
  const n = w.length / m;
  const out = new Float64Array((a.length / n) * m);
  for (let i = 0, from = 0; i < out.length; i += m, from += n) {
    for (let k = 0; k < n; k += 4) {
      const [v0, v1, v2, v3] = [a[from + k], a[from + k + 1], a[from + k + 2], a[from + k + 3]];
      const [w0, w1, w2, w3] = [k * m, (k + 1) * m, (k + 2) * m, (k + 3) * m];
      for (let j = 0; j < m; j++) {
        out[i + j] += v0 * w[w0 + j] + v1 * w[w1 + j] + v2 * w[w2 + j] + v3 * w[w3 + j];
      }
    }
    for (let j = 0; j < m; j++) out[i + j] = factor * out[i + j] + (b ? b[j] : 0);
  }
  return out;
}

// "rms", "layer" or "none" over rows of m features, with the gain and bias of a place.
export function normed(kind, a, m, p, place) {
  if (kind === "none") return a;
  const [s, b] = [p[`s${place}`], kind === "layer" && p[`b${place}`]];
  const out = new Float64Array(a.length);
  for (let i = 0; i < a.length; i += m) {
    let [mean, square] = [0, 0];
    if (kind === "layer") for (let j = 0; j < m; j++) mean += a[i + j] / m;
    for (let j = 0; j < m; j++) square += (a[i + j] - mean) ** 2 / m;
    const rstd = 1 / Math.sqrt(square + EPS);
    for (let j = 0; j < m; j++) {
      out[i + j] = (a[i + j] - mean) * rstd * (s ? s[j] : 1) + (b ? b[j] : 0);
    }
  }
  return out;
}

// What does not depend on the state, for all steps at once.
export function project(cell, p, x, d) {
  if (cell === "lstm") return [product(x, p.W, 4 * d, 1, p.b)];
  return [product(x, p.W, 2 * d, 1, p.b), product(x, p.Wx, d, 1, p.bx)];
}

// A run's pre-activations and states by step, and at each step the parts of its first unit.
export function run(cell, p, inputs, { sizes: [steps, batch, , d], kinds, gain = 1 }) {
  const step = { gru, lstm }[cell];
  const widths = cell === "gru" ? [2 * d, d] : [4 * d];
  const parts = inputs.map((a, i) => normed(kinds[i], a, widths[i], p, i + 1));
  const at = (a, t) => a.subarray((t * a.length) / steps, ((t + 1) * a.length) / steps);
  const found = [];
  let state = { h: new Float64Array(batch * d), c: new Float64Array(batch * d) };
  for (let t = 0; t < steps; t++) {
    state = step(p, parts.map((a) => at(a, t)), state, { kinds, gain, d });
    found.push(state);
  }
  return found;
}

function gru(p, [A, E], { h: before }, { kinds, gain, d }) {
  const Q = normed(kinds[2], product(before, p.U, 2 * d, gain), 2 * d, p, 3);
  const R = normed(kinds[3], product(before, p.Ux, d, gain), d, p, 4);
  const [gates, candidate, h] = [2, 1, 1].map((n) => new Float64Array(n * E.length));
  for (let i = 0; i < gates.length; i++) gates[i] = A[i] + Q[i];
  for (let i = 0, row = 0; i < h.length; row += 2 * d) {
    for (let j = row; j < row + d; j++, i++) {
      const u = sigmoid(gates[j + d]);
      candidate[i] = sigmoid(gates[j]) * R[i] + E[i];
      h[i] = u * before[i] + (1 - u) * Math.tanh(candidate[i]);
    }
  }
  const unit = { A: A[0], Q: Q[0], Au: A[d], Qu: Q[d], E: E[0], R: R[0], before: before[0] };
  return { gates, candidate, h, unit };
}

// The bias counts twice: inside A, and once more beside the norms.
function lstm(p, [A], { h: before, c: kept }, { kinds, gain, d }) {
  const Q = normed(kinds[1], product(before, p.U, 4 * d, gain), 4 * d, p, 2);
  const [gates, candidate, c, out, h] = [3, 1, 1, 1, 1]
    .map((n) => new Float64Array(n * kept.length));
  const z = (i, j) => A[i + j] + Q[i + j] + (p.b ? p.b[j] : 0);
  for (let i = 0, row = 0; i < c.length; row += d) {
    for (let j = 0; j < d; j++, i++) {
      const [from, to] = [4 * row, 3 * row + j];
      for (let k = 0; k < 3; k++) gates[to + k * d] = z(from, j + k * d);
      candidate[i] = z(from, j + 3 * d);
      c[i] = sigmoid(gates[to + d]) * kept[i] + sigmoid(gates[to]) * Math.tanh(candidate[i]);
      out[i] = sigmoid(gates[to + 2 * d]);
    }
  }
  const memory = normed(kinds[2], c, d, p, 3);
  for (let i = 0; i < h.length; i++) h[i] = out[i] * Math.tanh(memory[i]);
  const unit = { z: [0, 1, 2, 3].map((k) => z(0, k * d)), kept: kept[0] };
  return { gates, candidate, memory, h, c, unit };
}

// The quantiles of values, and the share that has come to within 5% of an end of σ or tanh.
export function spread(values, end) {
  const sorted = values.slice().sort();
  const quantiles = LEVELS.map((level) => {
    const at = level * (sorted.length - 1);
    const low = Math.floor(at);
    const high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
  });
  let out = 0;
  for (let i = 0; i < values.length; i++) out += Math.abs(values[i]) > end;
  return { quantiles, share: out / values.length };
}

// The figure's own cell from its bytes: gains 1 and biases 0 are left out.
export function own({ sizes: [, batch, n, d], loud, ...bytes }, cell) {
  const [x, W, U] = [bytes.x, bytes.W, bytes.U].map(decode);
  const [from, to] = [(loud[0] - 1) * batch * n, loud[1] * batch * n];
  for (let i = from; i < to; i++) x[i] *= 3;
  const columns = (a, first, blocks) => {
    const width = blocks * d;
    return Float64Array.from({ length: (a.length / (4 * d)) * width }, (_, i) =>
      a[4 * d * Math.floor(i / width) + first * d + (i % width)]);
  };
  const p = cell === "lstm" ? { W, U }
    : { W: columns(W, 0, 2), U: columns(U, 0, 2), Wx: columns(W, 2, 1), Ux: columns(U, 2, 1) };
  return { p, inputs: project(cell, p, x, d) };
}

// Which norm acts in each place, "none" where it is off.
export const kindsOf = ({ cell, norm, places }) =>
  places.slice(0, cell === "gru" ? 4 : 3).map((on) => (on ? norm : "none"));

// What a tap on a place makes of a state; where no norm is left there is none.
export function toggled({ cell, norm, places }, place) {
  const isOn = (i) => norm !== "none" && places[i] === 1;
  const next = places.map((_, i) => +(i === place ? !isOn(i) : isOn(i)));
  const isAny = next.slice(0, cell === "gru" ? 4 : 3).includes(1);
  return { norm: isAny ? (norm === "none" ? "rms" : norm) : "none", places: next };
}

// A source of runs: bands(cell, kinds, gain) by step, computed once.
export function source(data) {
  const [cells, runs] = [{}, new Map()];
  return (cell, kinds, gain) => {
    const key = [cell, ...kinds, gain].join();
    if (!runs.has(key)) {
      if (runs.size >= KEPT) runs.clear();
      const { p, inputs } = (cells[cell] ??= own(data, cell));
      const states = run(cell, p, inputs, { sizes: data.sizes, kinds, gain });
      runs.set(key, states.map((state) => bandsOf(state)));
    }
    return runs.get(key);
  };
}

function bandsOf(state) {
  const panels = Object.keys(ENDS).filter((name) => state[name]);
  return {
    ...Object.fromEntries(panels.map((name) => [name, spread(state[name], ENDS[name])])),
    unit: state.unit, h: state.h[0], c: state.c?.[0], m: state.memory?.[0],
  };
}

export function answers(bands, state) {
  const { cell, gain, step } = state;
  const kinds = kindsOf(state);
  const every = (kind) => kinds.map(() => kind);
  const [found, bare] = [bands(cell, kinds, gain), bands(cell, every("none"), gain)];
  const now = found[step - 1];
  return {
    ...state, kinds, found, bare, now, share: now.gates.share,
    bareShare: bare[step - 1].gates.share,
    fullShare: () => bands(cell, every("rms"), gain)[step - 1].gates.share,
  };
}

export const percent = (share) => `${Math.round(100 * share)}%`;
const FLAT = "A saturated gate passes less than a fifth of the gradient that it passes at ½.";

// What the norms do for the gates at this step, and what they leave in.
export function finding(last, loud) {
  const { cell, kinds, step, share, bareShare } = last;
  const isLoud = step >= loud[0] && step <= loud[1];
  const start = `Step ${step}${isLoud ? ", a loud one" : ""}: ${percent(share)} of the gates are `
    + "saturated";
  if (kinds.every((kind) => kind === "none")) {
    return `${start}; with RMSNorm everywhere ${percent(last.fullShare())}. ${FLAT}`;
  }
  const against = `${start}, without a norm ${percent(bareShare)}.`;
  const [input, state] = [kinds[0], kinds[cell === "gru" ? 2 : 1]].map((kind) => kind !== "none");
  if (step === 1 && state) {
    return `${against} The first state is 0, and a norm leaves 0 as it is: what the gates get is `
      + "the input’s part alone.";
  }
  if (input && state && bareShare < share + 0.005) {
    return `${against} At this gain and this step there is nothing to protect them from.`;
  }
  if (input && state) return `${against} Neither the loud input nor the gain γ comes through.`;
  if (input) return `${against} The loud input no longer comes through; the gain γ still does.`;
  if (state) return `${against} The gain γ no longer comes through; the loud input still does.`;
  return `${against} No norm that is on acts on the gates’ own sum.`;
}

// The numbers of the first unit, by the names of the equation.
export function partsOf({ cell, now: { unit, h, c, m } }) {
  if (cell === "lstm") {
    const [i, f, o] = unit.z.map(sigmoid);
    return { i, f, o, z: unit.z[3], g: Math.tanh(unit.z[3]), kept: unit.kept, c, m, h };
  }
  const [r, u] = [sigmoid(unit.A + unit.Q), sigmoid(unit.Au + unit.Qu)];
  return { ...unit, r, u, v: 1 - u, c: Math.tanh(r * unit.R + unit.E), h };
}
