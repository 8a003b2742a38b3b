// "Growing weights": SGD on a loss that only sees the direction of w. Every step is a tangent.
const [RATES, DECAYS, LOW, STEP] = [[-2, 0.5], [-3.1, -1], -3.1, 0.1]; // powers of ten; LOW is 0
const [EARLY, LATE] = [20, 50]; // steps that are averaged
const NAMES = ["rate", "decay", "step"];

// --- pure: `node --test` runs it against vectors from growing_weights.walk

// w before the first step and after each, and the gradients between them; without ε.
export function walk(core, { rate, decay }, angles) {
  const [w, dw] = [[[1, 0]], []];
  for (const angle of angles) {
    const now = w.at(-1);
    const size = core.rms(now);
    const unit = core.times(1 / size, now);
    const u = core.minus(unit, core.times(Math.SQRT2, [Math.cos(angle), Math.sin(angle)]));
    const share = core.dot(u, unit) / 2;
    dw.push(core.times(1 / size, core.minus(u, core.times(share, unit))));
    w.push(core.minus(core.times(1 - rate * decay, now), core.times(rate, dw.at(-1))));
  }
  return { w, dw };
}

// The walk with its squared norms, the angle of each step in degrees, the largest that the norm
// allows (‖dw‖ ≤ 2 / ‖w‖), and what the first and the last steps turn (RMS).
export function answers(core, state, angles) {
  const { rate, decay } = state;
  const { w, dw } = walk(core, state, angles);
  const squares = w.map((v) => core.dot(v, v));
  const turns = dw.map((_, i) => core.angle(w[i], w[i + 1]));
  const limits = dw.map((_, i) => (180 / Math.PI)
    * Math.atan(2 * rate / ((1 - rate * decay) * squares[i])));
  return {
    ...state, w, dw, squares, turns, limits, early: core.rms(turns.slice(0, EARLY)),
    late: core.rms(turns.slice(-LATE)), settled: core.mean(squares.slice(-LATE)),
  };
}

// The angle at which decay and growth balance: a mean square of 2ηλ, in degrees.
export const balance = ({ rate, decay }) => (180 / Math.PI) * Math.sqrt(2 * rate * decay);

const short = (v) => String(+v.toPrecision(3));
const degrees = (v) => `${v < 1 ? v.toFixed(2) : v.toFixed(1)}°`;

export function finding(core, now, start) {
  const { rate, decay, turns, squares, early, late } = now;
  const f = core.number;
  if (decay > 0 && rate * decay < 0.01) {
    return "Decay shortens w at every step, the gradient lengthens it. At ηλ = "
      + `${short(rate * decay)} the two need more than ${turns.length} steps to come into balance.`;
  }
  if (decay > 0) {
    return `Decay shortens w, the steps lengthen it: ‖w‖² settles near ${f(now.settled)}. There a `
      + `step turns w by about √(2ηλ) = ${degrees(balance(now))}; the last ${LATE} turned it by `
      + `${degrees(late)} (RMS).`;
  }
  if (rate > start.rate * 1.01) {
    return `The first step turns w by ${degrees(turns[0])}, at η = ${short(start.rate)} by `
      + `${degrees(start.turns[0])}. But large steps make w long, and that calms them: the last `
      + `${LATE} turn w by ${degrees(late)} (RMS), at η = ${short(start.rate)} by `
      + `${degrees(start.late)}.`;
  }
  return `No step makes w shorter: ‖w‖² goes from 1 to ${f(squares.at(-1))}. The longer w is, the `
    + `less a step turns it: ${degrees(early)} in the first ${EARLY} steps, ${degrees(late)} in `
    + `the last ${LATE} (RMS).`;
}

export const valueOf = (position) => (position < LOW + 0.05 ? 0 : 10 ** position);
export const positionOf = (value) => (value === 0 ? LOW : Math.max(LOW + 0.1, Math.log10(value)));

// A round length that the whole path fits in.
export const reachOf = (squares) =>
  [1.5, 2, 3, 4, 6, 8, 12].find((r) => r * r >= Math.max(...squares)) ?? 12;

// --- the page
const TITLE = "Without decay a step of SGD can only make w longer, and a longer w turns less.";
const HOW = "Two weights w with RMSNorm behind them: the loss sees only the direction of w. Drag "
  + "the line across the charts to walk through the steps.";
const EQUATION = `<span class="rmsn-wraps">new ‖<i>w</i>‖<sup>2</sup> = (1 − <i>ηλ</i>)<sup>2</sup>
  ‖<i>w</i>‖<sup>2</sup> + <i>η</i><sup>2</sup>‖<i>dw</i>‖<sup>2</sup></span>
  <span class="rmsn-aside"><span data-slot="kept"></span> + <span data-slot="grown"></span> =
  <b class="is-rms" data-slot="after"></b></span>
  <span class="rmsn-steps"><span>⟨<i>w</i>, <i>dw</i>⟩</span><span data-slot="inner"></span>
  <span>step <span data-slot="step"></span> turns <i>w</i> by</span><span data-slot="turn"></span>
  <span>at this ‖<i>w</i>‖ at most</span><span data-slot="limit"></span></span>`;

// The state, held to what the picture can show (a link can hold anything).
function read(core, model, steps) {
  const inside = (name, range) => core.clamp(model.get(name), range);
  return {
    rate: inside("rate", [10 ** RATES[0], 3.2]), decay: inside("decay", [0, 0.1]),
    step: Math.round(inside("step", [1, steps])),
  };
}

function render({ model, el, d3, core }) {
  const angles = model.get("angles");
  const state = () => read(core, model, angles.length);
  const start = answers(core, state(), angles);
  const set = (values) => core.change(model, values);
  function answer(last) {
    const now = state();
    const isWalked = now.rate === last?.rate && now.decay === last.decay;
    return isWalked ? { ...last, step: now.step } : answers(core, now, angles);
  }
  return core.live({
    core, model, names: NAMES, parts: build({ el, core, start, set }), answer,
    draw: (width, now) => draw({ d3, core, width, start, set, now }),
  });
}

const pick = ({ rate, decay, step }) => ({ rate, decay, step });

const ideas = (start, set) => {
  const { rate, decay, turns: { length: steps } } = start;
  return [
    ["10 × rate: it calms itself", () => set({ rate: 10 * rate, decay, step: 1 })],
    ["Decay: a balance", () => set({ rate, decay: 0.1, step: steps })],
    ["0.1 × rate: hardly a turn", () => set({ rate: rate / 10, decay, step: steps })],
  ];
};

// Everything around the picture, in reading order.
function build({ el, core, start, set }) {
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const logs = (key, label, range) => core.slider({
    label, range, step: STEP, format: (p) => short(valueOf(p)),
    onInput: (p) => set({ [key]: valueOf(p) }),
  });
  const rate = logs("rate", "Rate η (log)", RATES);
  const decay = logs("decay", "Decay λ (log)", DECAYS);
  const table = core.hiddenTable("The weights by step");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE), core.node("p", { class: "rmsn-how" }, HOW),
    picture, core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, rate.el, decay.el),
    core.tries(ideas(start, set), () => set(pick(start))), table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      rate.set(positionOf(last.rate));
      decay.set(positionOf(last.decay));
      tell(core, { equation, fill }, last);
      core.say(said, finding(core, last, start));
      table.set(() => rows(core, last));
    },
  };
}

function tell(core, { equation, fill }, { rate, decay, step, w, dw, squares, turns, limits }) {
  const [k, f] = [step - 1, (v) => v.toFixed(4)];
  const [kept, grown] = [(1 - rate * decay) ** 2 * squares[k], rate ** 2 * core.dot(dw[k], dw[k])];
  const texts = {
    kept: f(kept), grown: f(grown), after: f(squares[step]), step,
    inner: f(core.dot(w[k], dw[k])).replace("-0.0000", "0.0000"), turn: degrees(turns[k]),
    limit: degrees(limits[k]),
  };
  fill(texts);
  equation.setAttribute("aria-label",
    `Step ${step}: the squared norm of w was ${f(squares[k])}; ${texts.kept} of it is kept, `
    + `${texts.grown} is added, so it is ${texts.after}. The inner product of w and dw is `
    + `${texts.inner}. The step turns w by ${texts.turn}, and cannot by more than ${texts.limit}.`);
}

function rows(core, { w, squares, turns }) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 150, 200].filter((s) => s <= turns.length);
  const row = (name, value) => [name, ...steps.map((s) => core.number(value(s)))];
  return [["step", ...steps.map(String)], row("w 1", (s) => w[s][0]), row("w 2", (s) => w[s][1]),
    row("squared norm", (s) => squares[s]), row("angle", (s) => turns[s - 1])];
}

// --- the picture: drawn once for a width, then only attributes change
function draw({ d3, core, width, start, set, now }) {
  const isWide = width >= 560;
  const side = Math.round(isWide ? width * 0.46 : Math.min(width, 250));
  const box = core.plane({
    core, d3, side, reach: 1, origin: [0.3, 0.72], label: "The path of w in the plane",
  });
  const charts = panels({
    d3, core, width: isWide ? width - side - 24 : width, tall: isWide ? side : 240, start, set, now,
  });
  const path = wandering({ core, box });
  return {
    el: core.node("div", { class: "rmsn-pair" }, box.svg.node(), charts.el),
    update(last) {
      path(last);
      charts.update(last);
    },
  };
}

// The path of w: what is behind the chosen step, the step itself, and the rest of it, faint.
function wandering({ core, box }) {
  const { clip, side, to } = box;
  const path = (cls) => clip.append("path").attr("class", cls);
  const [unit, orbit] = [core.circle(box, "is-unit"), core.circle(box, "is-input")];
  const [tangent, rest, behind, w, step, corner] = ["rmsn-hair", "rmsn-trail is-faint",
    "rmsn-trail", "rmsn-arrow is-input", "rmsn-arrow is-rms", "rmsn-corner-mark"].map(path);
  const write = core.names(core, box, ["", "is-rms", "is-small"]);
  return (last) => {
    const scale = 1.3 / reachOf(last.squares);
    const points = last.w.map((v) => core.times(scale, v));
    const [before, after] = points.slice(last.step - 1);
    const line = (found) => `M${found.map((v) => to(v).map((c) => c.toFixed(1))).join("L")}`;
    const pixels = scale * box.unit;
    core.put(unit, { r: () => pixels });
    core.put(orbit, { r: () => Math.sqrt(last.squares[last.step - 1]) * pixels });
    core.put(tangent, { d: () => core.tangent(before, to, 2 * side) });
    core.put(rest, { d: () => line(points.slice(last.step - 1)) });
    core.put(behind, { d: () => line(points.slice(0, last.step)) });
    core.put(w, { d: () => core.arrow(to([0, 0]), to(before)) });
    core.put(step, { d: () => core.arrow(to(before), to(after), 8) });
    const move = core.minus(after, before);
    core.put(corner, { d: () => core.rightAngle(before, move, to, 0.08) });
    write([core.plus(to(core.times(0.5, before)), [10, 12]), core.beyond(before, move, to),
      core.plus(to([0.8 * scale, -0.6 * scale]), [30, 14])], ["w", "step", "‖w‖ = 1"]);
  };
}

const TICKS = { squares: [1, 10, 100], turns: [0.1, 1, 10, 90] };

// ‖w‖² and the angle of each step against the step, both on logarithmic axes, with one reader.
function panels({ d3, core, width, tall, start, set, now }) {
  const [left, right, steps] = [34, width - 8, start.turns.length];
  const svg = core.picture(d3, width, tall, "Squared norm of w, and the angle of each step");
  const x = d3.scaleLinear([0, steps], [left, right]);
  const high = (tall - 92) / 2;
  const chart = (name, top, range) => panel({
    d3, core, svg, left, right, x, y: d3.scaleLog(range, [top + high, top]), top, high,
    ticks: TICKS[name],
  });
  const [norm, turn] = [chart("squares", 24, [0.3, 150]), chart("turns", 66 + high, [0.02, 120])];
  core.bare(svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${tall - 26})`)
    .call(d3.axisBottom(x).ticks(4).tickSize(4).tickFormat((v) => (v ? v : "step 0"))));
  const read = core.reader({
    d3, svg, label: "Step to show", range: [1, steps], step: 1, value: () => now().step,
    box: { left, right, top: 24, tall: tall - 50, x },
    move: (step) => set({ step: core.clamp(Math.round(step), [1, steps]) }),
  });
  const between = 42; // the line that reads spares the lower title
  read.stem.select("line").attr("stroke-dasharray", `${high + 4} ${between} ${tall}`);
  const title = (at, parts) => core.words(svg, 0, at, parts).classed("rmsn-halo", true)
    .attr("pointer-events", "none"); // the hand goes through to the reader's line
  title(14, [["", "‖w‖² after each step (log axis)"]]);
  title(56 + high, [["", "Turn in degrees (log axis)"], ["is-rms", "at most ∝ 1 / ‖w‖²"]]);
  return { el: svg.node(), update: (last) => follow(core, { norm, turn, read, x, start }, last) };
}

// Hairlines, and a layer cut at the panel's edge with a faint curve, a curve and dots.
function panel({ d3, core, svg, left, right, x, y, top, high, ticks }) {
  core.hairlines(d3, svg, { y, ticks, left, right, format: d3.format("~g") });
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("aria-hidden", "true")
    .attr("x", left).attr("y", top).attr("width", right - left).attr("height", high);
  const at = (v, i) => `${(x(i) - left).toFixed(1)},${(y(Math.max(v, 1e-3)) - top).toFixed(1)}`;
  const [faint, curve, dots] = ["rmsn-curve is-rms is-faint", "rmsn-curve is-rms", "rmsn-turns"]
    .map((cls) => clip.append("path").attr("class", cls));
  const line = (path, values) => core.put(path, { d: () => `M${values.map(at).join("L")}` });
  return {
    y, faint: (values) => line(faint, values), curve: (values) => line(curve, values),
    dots: (values) => core.put(dots, {
      d: () => values.map((v, i) => (v < y.domain()[0] ? "" : `M${at(v, i + 1)}h0`)).join(""),
    }),
  };
}

function follow(core, { norm, turn, read, x, start }, last) {
  const { step, squares, turns, limits } = last;
  norm.faint(start.squares);
  norm.curve(squares);
  turn.faint([start.limits[0], ...start.limits]);
  turn.curve([limits[0], ...limits]);
  turn.dots(turns);
  core.put(read.stem, { transform: () => `translate(${x(step)},0)` });
  core.put(read.group, {
    "aria-valuenow": () => step,
    "aria-valuetext": () => `step ${step}: squared norm ${core.number(squares[step])}, `
      + `turned by ${degrees(turns[step - 1])}`,
  });
}

export default { render };
