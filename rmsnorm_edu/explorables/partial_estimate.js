// "Partial estimate": the RMS of the first k features against the RMS of the row, by p and n.
const TOP = 2.5; // of the axis: the largest ratio that is drawn
const TITLE = "A few features tell the size of a row, if they are a fair sample of it.";
const FEATURES = [["normal", "independent normal"], ["heavy", "heavy tails"],
  ["largest", "largest first"], ["smallest", "smallest first"], ["outlier", "one outlier"]];
const EQUATION = `<span class="rmsn-wide"><i>k</i> = ⌈<i>np</i>⌉ =
    ⌈<span data-slot="np"></span>⌉ = <b class="is-rms" data-slot="k"></b></span>
  <span class="rmsn-wide rmsn-aside">2019 code: int(<span data-slot="np"></span>) =
    <b data-slot="floor"></b></span>
  <span></span><span>derived</span><span><span data-slot="rows"></span> rows</span>
  <span>mean <i>c<sub>k</sub></i> / <i>c<sub>n</sub></i></span>
    <b data-slot="mean"></b><b class="is-rms" data-slot="seenMean"></b>
  <span>spread √(1 − mean<sup>2</sup>)</span>
    <b data-slot="sd"></b><b class="is-rms" data-slot="seenSd"></b>
  <span class="rmsn-aside">rule 1/√(2<i>k</i>)</span><span data-slot="rule"></span><span></span>
  <span class="rmsn-wide rmsn-aside"><i>c<sub>k</sub></i> =
    √(2/<i>k</i>) Γ((<i>k</i> + 1)/2) / Γ(<i>k</i>/2)</span>`;

// --- the page

const nearest = (list, value) => list.reduce((best, v, i) =>
  (Math.abs(Math.log(v / value)) < Math.abs(Math.log(list[best] / value)) ? i : best), 0);

// The state, held to what the sliders can give (a link can hold anything).
function read(core, model) {
  const [p, n] = [model.get("p") || 0, model.get("n") || 0].map((v) => Math.max(v, 1e-9));
  const at = nearest(core.PERCENTS, 100 * p);
  const known = FEATURES.some(([name]) => name === model.get("features"));
  return {
    at, percent: core.PERCENTS[at], p: core.shareOf(core.PERCENTS[at]),
    n: core.SIZES[nearest(core.SIZES, n)], features: known ? model.get("features") : "normal",
  };
}

function render({ model, el, d3, core }) {
  const move = (at) => core.change(model, { p: core.shareOf(core.PERCENTS[at]) });
  const rows = drawnOnce(core);
  function answer() {
    const state = read(core, model);
    const { measured, funnel } = rows(state);
    return { ...state, ...core.answers(measured, state), funnel };
  }
  return core.live({
    core, model, names: ["p", "n", "features"], parts: build({ model, el, core, move }), answer,
    draw: (width, now) => draw({ d3, core, width, move, now }),
  });
}

// The rows of features and n, their mean and spread at every p; those of the chosen features stay.
function drawnOnce(core) {
  let [chosen, kept] = ["", new Map()];
  const drawn = (features, n) => {
    const measured = core.ratios(features, n);
    const seen = new Map([...measured].map(([k, values]) => [k, core.spread(values)]));
    const funnel = core.PERCENTS.map((percent) => {
      const k = core.partialSize(n, core.shareOf(percent), "ceil");
      return { percent, seen: seen.get(k), law: core.derived(n, k) };
    });
    return { measured, funnel };
  };
  return ({ features, n }) => {
    if (features !== chosen) [chosen, kept] = [features, new Map()];
    if (!kept.has(n)) kept.set(n, drawn(features, n));
    return kept.get(n);
  };
}

const ideas = (set) => [
  ["6.25% of 8: division by zero", { n: 8, p: 0.0625, features: "normal" }],
  ["29% of 100: 29 or 28", { n: 100, p: 0.29, features: "normal" }],
  ["Sorted: no sample", { n: 1024, p: 0.0625, features: "largest" }],
].map(([text, state]) => [text, () => set(state)]);

function sliders(core, { move, set }) {
  const p = core.slider({
    label: "p", range: [0, core.PERCENTS.length - 1], step: 1, unit: "%",
    format: (at) => String(core.PERCENTS[at]), onInput: move,
  });
  const n = core.slider({
    label: "n", range: [0, core.SIZES.length - 1], step: 1,
    format: (at) => String(core.SIZES[at]), onInput: (at) => set({ n: core.SIZES[at] }),
  });
  return { p, n };
}

// Everything around the picture, in reading order.
function build({ model, el, core, move }) {
  const start = (({ p, n, features }) => ({ p, n, features }))(read(core, model));
  const set = (values) => core.change(model, values);
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation rmsn-estimate", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const { p, n } = sliders(core, { move, set });
  const chosen = core.choice("Features", FEATURES, (features) => set({ features }));
  const table = core.hiddenTable("The estimate by the share of the features");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, p.el, n.el),
    chosen.el,
    core.tries(ideas(set), () => set(start)),
    table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      p.set(last.at);
      n.set(core.SIZES.indexOf(last.n));
      chosen.set(last.features);
      tell(core, { equation, fill }, last);
      core.say(said, core.finding(last));
      table.set(() => rowsOf(core, last));
    },
  };
}

function tell(core, { equation, fill }, { n, p, k, floor, values, law, seen }) {
  const [mean, sd, rule, seenMean, seenSd] =
    [law.mean, law.sd, law.rule, seen.mean, seen.sd].map(core.number);
  const rows = values.length;
  fill({ np: `${n} × ${p}`, k, floor, rows, mean, sd, rule, seenMean, seenSd });
  equation.querySelector("[data-slot=floor]").className = floor === 0 ? "is-wrong" : "";
  equation.setAttribute("aria-label", `k is the ceiling of ${n} times ${p}: ${k}. `
    + `The 2019 code takes int of it: ${floor}. Mean of the estimate over the RMS of the row: `
    + `${mean} derived for independent normal features, ${seenMean} in ${rows} rows. `
    + `Spread: ${sd} derived, ${seenSd} in the rows. One over the root of two k: ${rule}.`);
}

function rowsOf(core, { n, funnel }) {
  const shown = funnel.filter(({ percent }) => [1, 2, 5, 6.25, 10, 25, 50, 100].includes(percent));
  const row = (name, cell) => [name, ...shown.map(cell)];
  const k = (rounding) => ({ percent }) => core.partialSize(n, core.shareOf(percent), rounding);
  return [row("p", ({ percent }) => `${percent}%`), row("ceiling", k("ceil")),
    row("int", k("floor")),
    row("derived mean", ({ law }) => core.number(law.mean)),
    row("derived spread", ({ law }) => core.number(law.sd)),
    row("measured mean", ({ seen }) => core.number(seen.mean)),
    row("measured spread", ({ seen }) => core.number(seen.sd))];
}

// --- the picture: the axes once for a width, the band for a choice, the rest for a move
function draw({ d3, core, width, move, now }) {
  const box = layout(d3, core, width);
  const svg = core.picture(d3, width, box.height,
    "RMS of the first k features over the RMS of the row, by p; drag the line that reads a p");
  backdrop({ d3, core, svg, box });
  const parts = [
    band({ d3, core, svg, box }), side({ d3, core, svg, box }),
    marker({ d3, core, svg, box, move, now }),
  ];
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

// At the left the band by p, then from `edge` to `end` the rows at the chosen p.
function layout(d3, core, width) {
  const isNarrow = width < 420;
  const [left, end, top, tall] = [24, width - 34, 70, isNarrow ? 220 : 280];
  const right = end - (isNarrow ? 74 : 150);
  const log = d3.scaleLog([1, 100], [left, right]);
  const at = (px) => nearest(core.PERCENTS, log.invert(px));
  return {
    left, right, top, tall, bottom: top + tall, edge: right + 14, end, height: top + tall + 44,
    isNarrow, log, x: { invert: at }, y: d3.scaleLinear([0, TOP], [top + tall, top]),
  };
}

const OUTPUTS = [[2, "÷ 2"], [1, "× 1"], [1 / 2, "× 2"], [1 / 4, "× 4"]];

function backdrop({ d3, core, svg, box }) {
  const { left, right, bottom, edge, end, top, y, log, isNarrow } = box;
  core.hairlines(d3, svg, { y, ticks: [0, 1, 2], left, right: end })
    .selectAll(".tick").classed("rmsn-zero", (v) => v === 1);
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(log).tickValues(isNarrow ? [1, 10, 100] : [1, 2, 5, 10, 20, 50, 100])
      .tickSize(5).tickPadding(4).tickFormat((v) => `${v}%`));
  core.bare(axis);
  const small = (x, at, anchor, text) => svg.append("text").attr("class", "rmsn-label is-small")
    .attr("aria-hidden", "true").attr("x", x).attr("y", at).attr("text-anchor", anchor).text(text);
  OUTPUTS.forEach(([r, text]) => small(end + 6, y(r) + 4, "start", text));
  small(end + 34, top - 12, "end", "output");
  small(right, bottom + 38, "end", `p${isNarrow ? "" : ", share of the features"} (log axis)`);
  small(edge, bottom + 38, "start", "rows at this p");
  core.words(svg, 0, 12, [["", isNarrow ? "RMS of the first k / RMS of the row"
    : "RMS of the first k features / RMS of the row: 1 is right"]]);
  core.words(svg, 0, 30, [["is-rms", `blue: measured${isNarrow ? "" : ", mean ± spread"}`],
    ["", `dashes: derived${isNarrow ? ", if normal" : " for independent normal features"}`]]);
}

// Where the 2019 code has no feature left; mean and spread by p, measured and derived.
function band({ d3, core, svg, box: { left, right, top, tall, bottom, log, isNarrow } }) {
  const crash = svg.append("g").attr("aria-hidden", "true");
  const [ground, hatch] = [crash.append("rect").attr("class", "rmsn-crash"),
    crash.append("path").attr("class", "rmsn-hatch")];
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("x", left).attr("y", top)
    .attr("width", right - left).attr("height", tall).attr("aria-hidden", "true");
  const [x, y] = [(d) => log(d.percent) - left, d3.scaleLinear([0, TOP], [tall, 0])];
  const line = (name, sign) => d3.line().x(x).y((d) => y(d[name].mean + sign * d[name].sd));
  const area = d3.area().x(x).y0((d) => y(d.seen.mean - d.seen.sd))
    .y1((d) => y(d.seen.mean + d.seen.sd));
  const shapes = [["rmsn-seen", area], ["rmsn-curve is-rms", line("seen", 0)],
    ["rmsn-law-line", line("law", 1)], ["rmsn-law-line", line("law", -1)]];
  const paths = clip.selectAll("path").data(shapes).join("path").attr("class", ([cls]) => cls);
  const label = svg.append("text").attr("class", "rmsn-label is-small is-wrong rmsn-halo")
    .attr("aria-hidden", "true").attr("y", top + 16).attr("x", left + 4);
  let shown = null;
  return ({ n, funnel }) => {
    if (funnel === shown) return;
    shown = funnel;
    core.put(paths, { d: ([, shape]) => shape(funnel) });
    const end = n < 100 ? log(100 / n) : left;
    core.put(ground, { x: () => left, y: () => top, width: () => end - left, height: () => tall });
    core.put(hatch, { d: () => core.stripes([left, end], [top, bottom]) });
    const text = isNarrow ? "int(np) = 0" : "int(np) = 0: 2019 divides by 0";
    core.say(label.node(), n < 100 ? text : "");
  };
}

const WIDTHS = [0.01, 0.02, 0.03, 0.05, 0.1];

// The rows at the chosen p, on the same axis: a histogram, and the derived density over it.
function side({ d3, core, svg, box: { edge, end, top, tall } }) {
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("x", edge).attr("y", top)
    .attr("width", end - edge).attr("height", tall).attr("aria-hidden", "true");
  const y = d3.scaleLinear([0, TOP], [tall, 0]);
  const bars = clip.append("path").attr("class", "rmsn-seen");
  const curve = clip.append("path").attr("class", "rmsn-law-line");
  const beyond = svg.append("text").attr("class", "rmsn-label is-small is-rms rmsn-halo")
    .attr("aria-hidden", "true").attr("x", edge).attr("y", top + 14);
  return ({ n, k, values, law, seen }) => {
    const width = k === n ? 0.03 : WIDTHS.find((w) => w >= seen.sd / 3) ?? WIDTHS.at(-1);
    const found = core.histogram(values, width, Math.ceil(TOP / width));
    const points = k === n ? [] : d3.range(-8, 8.01, 0.1).map((t) => law.mean + t * law.sd)
      .filter((r) => r > 0 && r < Math.min(TOP, Math.sqrt(n / k)))
      .map((r) => [r, core.density(n, k, r)]);
    const most = Math.max(...found, 1e-9);
    const peak = Math.max(most, Math.min(2 * most, Math.max(0, ...points.map((v) => v[1]))));
    const seenCurve = points.filter((v) => v[1] > 0.004 * peak);
    const scale = (v) => ((end - edge) * 0.94 * v) / peak;
    core.put(bars, { d: () => found.map((v, i) => (v === 0 ? "" : `M0,${y(i * width).toFixed(1)}H${
      scale(v).toFixed(1)}V${y((i + 1) * width).toFixed(1)}H0Z`)).join("") });
    core.put(curve, { d: () => d3.line((v) => scale(v[1]), (v) => y(v[0]))(seenCurve) ?? "" });
    const out = values.filter((v) => v >= TOP).length / values.length;
    core.say(beyond.node(), out > 0.005 ? `${Math.round(100 * out)}% above` : "");
  };
}

function marker({ d3, core, svg, box, move, now }) {
  const { left, right, top, log, y } = box;
  const { group, stem } = core.reader({
    d3, svg, box, move, range: [0, core.PERCENTS.length - 1], step: 1, value: () => now().at,
    label: "p, the share of the features",
  });
  const label = group.append("text").attr("class", "rmsn-label is-small").attr("y", top - 12)
    .attr("text-anchor", "middle");
  const dot = group.append("circle").attr("class", "rmsn-dot is-rms").attr("r", 5)
    .attr("pointer-events", "none");
  return ({ at, percent, k, n, seen }) => {
    const px = log(percent);
    core.put(stem, { transform: () => `translate(${px},0)` });
    core.put(label, { x: () => core.clamp(px, [left + 40, right - 40]) });
    core.say(label.node(), `${percent}%: k = ${k}`);
    core.put(dot, { cx: () => px, cy: () => y(Math.min(seen.mean, TOP)) });
    core.put(group, {
      "aria-valuenow": () => at,
      "aria-valuetext": () => `${percent}%: ${k} of ${n} features, mean ${core.number(seen.mean)}, `
        + `spread ${core.number(seen.sd)}`,
    });
  };
}

export default { render };
