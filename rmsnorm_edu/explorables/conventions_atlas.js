// "Conventions atlas": two families of RMSNorm, one row; where outputs and lines differ.
const TITLE = "Two libraries call it RMSNorm. Type and size of the input decide if they agree.";
const NAMES = ["first", "second", "dtype", "weight", "scale", "feature"];
const TALLEST = 1e5; // ulps, of the axis of distances

// The state, held to what the figure can show (a link can hold anything).
function read(core, model) {
  const { families, types, shown } = model.get("data");
  const one = (name, known) => (known.includes(model.get(name)) ? model.get(name) : known[0]);
  const names = Object.keys(families);
  return {
    first: one("first", names), second: one("second", names),
    dtype: one("dtype", Object.keys(types)), weight: one("weight", ["same", "float32"]),
    scale: core.scaleAt(core.stepAt(model.get("scale"))),
    feature: core.clamp(Math.round(model.get("feature")), [1, shown]),
  };
}

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const set = (values) => core.change(model, values);
  const move = (feature) => set({ feature: core.clamp(Math.round(feature), [1, data.shown]) });
  return core.live({
    core, model, names: NAMES, parts: build({ model, el, core, data, set }),
    answer: () => core.answers(data, read(core, model)),
    draw: (width, now) => draw({ d3, core, width, data, move, now }),
  });
}

const ideas = (set) => [
  ["LLaMA beside torch, float32", "llama", "torch", "float32", 3],
  ["10⁻⁴: ε decides", "paper_torch", "gemma", "float32", 1e-4],
  ["float16 at 300: who overflows", "paper_tensorflow", "torch", "float16", 300],
].map(([text, first, second, dtype, scale]) =>
  [text, () => set({ first, second, dtype, weight: "same", scale })]);

// A list of names in groups.
function select(core, label, { groups, families }, choose) {
  const { node } = core;
  const el = node("select", {}, ...Object.entries(groups).map(([group, names]) =>
    node("optgroup", { label: group }, ...names.map((name) =>
      node("option", { value: name }, families[name].label)))));
  el.addEventListener("change", () => choose(el.value));
  return {
    el: node("label", { class: "rmsn-choose" }, node("span", {}, label), el),
    set: (now) => { el.value = now; },
  };
}

function controls(core, data, set) {
  const slider = core.slider({
    label: "RMS(x)", range: core.STEPS, step: 1, format: (k) => core.size(core, core.scaleAt(k)),
    onInput: (k) => set({ scale: core.scaleAt(k) }),
  });
  slider.el.classList.add("is-wide");
  return {
    first: select(core, "First", data, (first) => set({ first })),
    second: select(core, "Second", data, (second) => set({ second })),
    scale: { el: slider.el, set: (v) => slider.set(core.stepAt(v)) },
    dtype: core.choice("x in", Object.keys(data.types).map((t) => [t, t]),
      (dtype) => set({ dtype })),
    weight: core.choice("w in", [["same", "x’s type"], ["float32", "float32"]],
      (weight) => set({ weight })),
  };
}

// Everything around the picture, in reading order.
function build({ model, el, core, data, set }) {
  const { node } = core;
  const start = read(core, model);
  const picture = node("div", { class: "rmsn-picture" });
  const programs = [0, 1].map((i) => program(core, i));
  const equation = node("div", { class: "rmsn-equation is-atlas", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const hands = controls(core, data, set);
  const table = core.hiddenTable("The outputs that are drawn, and how far apart they are in ulps");
  el.append(node("div", { class: "rmsn" },
    node("p", { class: "rmsn-title" }, TITLE),
    picture,
    node("div", { class: "rmsn-duo" }, ...programs.map((p) => p.el)),
    node("p", { class: "rmsn-key" }, KEY),
    node("div", { class: "rmsn-told" }, equation, said),
    node("div", { class: "rmsn-sliders" }, hands.first.el, hands.second.el),
    hands.scale.el,
    node("div", { class: "rmsn-sliders" }, hands.dtype.el, hands.weight.el),
    core.tries(ideas(set), () => set(start)),
    table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      Object.entries(hands).forEach(([name, hand]) => hand.set(last[name]));
      programs.forEach((p) => p.update(last));
      tell(core, { equation, fill }, last);
      core.say(said, core.finding(core, last));
      table.set(() => rows(core, last, data.shown));
    },
  };
}

const KEY = "“→ float16”: stored in float16. All else is kept in float32. n features, m the mean "
  + "square, D the divisor. Both get the same gains.";

// The lines of one of the two; ≠ marks those that differ.
function program(core, i) {
  const { node } = core;
  const [name, lines] = [node("figcaption"), node("ol")];
  let shown = "";
  return {
    el: node("figure", { class: "rmsn-program" }, name, lines),
    update({ both, code }) {
      core.say(name, both[i].label);
      const found = code.filter((line) => line.lines.some(Boolean));
      const key = JSON.stringify(found);
      if (key === shown) return;
      shown = key;
      lines.replaceChildren(...found.map(({ lines: { [i]: text = "—" }, differs }) => {
        const li = node("li", { class: differs ? "is-differing" : "" });
        const line = node("span");
        core.typeset(line, text);
        li.append(...(differs ? [node("span", { class: "rmsn-hidden" }, "differs: ")] : []), line);
        return li;
      }));
    },
  };
}

const row = (i) => `<span data-slot="name${i}"></span><span><span><i>D</i> =
  <b data-slot="by${i}"></b>,</span> <span><i>y</i><sub data-slot="feature"></sub> =
  <b class="is-rms" data-slot="y${i}"></b></span></span>`;
const EQUATION = `<span class="rmsn-aside"><i>y</i> = <i>g</i> <i>x</i> / <i>D</i>, <i>g</i> =
  <span data-slot="gain"></span>, <i>x</i> = <span data-slot="x"></span></span>${row(0)}${row(1)}
  <span class="rmsn-aside" data-slot="apart"></span>`;

function tell(core, { equation, fill }, last) {
  const { both, types, read: { x, gain, y, ulps }, feature } = last;
  const shown = y.map((v, i) => core.exactly(core, v, types[both[i].type].digits));
  const by = both.map((family) => (family.by === Infinity ? "∞" : core.size(core, family.by)));
  const unit = ulps === 0 ? "" : `, in ${last.type}`;
  const apart = `feature ${feature}: ${core.inUlps(core, ulps, y)}${unit}`;
  const [g, given] = [core.exactly(core, gain, 4), core.exactly(core, x, 4)];
  fill({
    feature, apart, gain: g, x: given,
    name0: both[0].label, name1: both[1].label, by0: by[0], by1: by[1], y0: shown[0],
    y1: shown[1],
  });
  both.forEach(({ isLost }, i) => {
    const cls = isLost ? "is-wrong" : "is-rms";
    [`by${i}`, `y${i}`].forEach((name) => {
      equation.querySelector(`[data-slot=${name}]`).className = cls;
    });
  });
  equation.setAttribute("aria-label", `y is g x divided by D, g ${g}, x ${given}. `
    + `${both.map(({ label }, i) => `${label}: D ${by[i]}, y ${shown[i]}`).join(". ")}. ${apart}.`);
}

function rows(core, { both, types, ulps }, n) {
  const outputs = both.map(({ label, y, type }) =>
    [label, ...y.slice(0, n).map((v) => core.exactly(core, v, types[type].digits))]);
  const far = ulps.slice(0, n).map((u) => (u === Infinity ? "∞" : `${u}`));
  return [["feature", ...far.map((_, i) => `${i + 1}`)], ...outputs, ["ulps apart", ...far]];
}

// --- the picture: drawn once for a width, then only attributes change
function draw({ d3, core, width, data, move, now }) {
  const box = layout(d3, width, data);
  const svg = core.picture(d3, width, box.height,
    "Outputs of both by feature, their distance in ulps, and how often each distance occurs");
  backdrop({ d3, core, svg, box, data });
  const parts = [
    outputs({ d3, core, svg, box, data }), histogram({ d3, core, svg, box, data }),
    marker({ d3, core, svg, box, move, now, data }),
  ];
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

function layout(d3, width, { shown, x, gain }) {
  const sizes = x.slice(0, shown).map((v, i) => Math.abs(v * gain[i % gain.length]));
  const limit = Math.max(...sizes) / 1e3 / 2 ** 16;
  const isNarrow = width < 560;
  const [left, right, top, tall] = [34, isNarrow ? width - 4 : width - 268, 30,
    isNarrow ? 194 : 214];
  const [middle, rail, bottom] = [top + tall - 80, top + tall - 56, top + tall];
  const from = isNarrow ? bottom + 34 : 0;
  return {
    left, right, top, tall, bottom, middle, rail, isNarrow,
    height: isNarrow ? from + 122 : bottom + 26,
    wide: (0.62 * (right - left)) / shown,
    x: d3.scaleLinear([0.4, shown + 0.6], [left, right]),
    y: d3.scaleLinear([-limit, limit], [middle, top]).clamp(true),
    ulps: d3.scaleLog([0.02, TALLEST], [rail, bottom]).clamp(true),
    bars: { left: isNarrow ? left : right + 34, right: width - 2, top: from + 30,
      bottom: isNarrow ? from + 100 : bottom },
  };
}

function backdrop({ d3, core, svg, box, data: { shown, x: { length: n } } }) {
  const { left, right, bottom, rail, y, ulps, bars } = box;
  core.hairlines(d3, svg, { y, ticks: [-2, 0, 2], left, right });
  core.hairlines(d3, svg, {
    y: ulps, ticks: [1, 100, 1e4], left, right,
    format: (v) => (v === 1e4 ? "10⁴" : String(v)),
  });
  core.words(svg, left, rail - 6, [["", "ulps apart (log axis)"]]).classed("is-small", true);
  core.words(svg, right, bottom + 18, [["", `the first ${shown} of ${n} features`]])
    .classed("is-small", true).attr("text-anchor", "end");
  core.words(svg, bars.left, bars.top - 18, [["", `Of ${n} outputs, by ulps apart`]]);
}

// Bars for the first, a line across for the second, below them how far they are apart.
function outputs({ d3, core, svg, box, data: { shown } }) {
  const { x, y, ulps, wide, rail } = box;
  const title = core.words(svg, 0, 12, [["is-rms", ""], ["is-ink", ""]]);
  const group = svg.append("g").attr("class", "is-rms").attr("aria-hidden", "true");
  const bars = group.append("path").attr("class", "rmsn-mark");
  const marks = group.append("path").attr("class", "rmsn-second");
  const far = [false, true].map((wrong) => [group.append("path").attr("stroke-width", wide)
    .attr("class", `rmsn-apart ${wrong ? "is-wrong" : ""}`), wrong]);
  const hatch = group.append("path").attr("class", "rmsn-hatch");
  const features = d3.range(1, shown + 1);
  const each = (values, write) => features.map((i) => write(values[i - 1], x(i))).join("");
  return ({ both, ulps: found }) => {
    const isLost = both.some((family) => family.isLost);
    title.data([`■ ${both[0].label}`, `– ${both[1].label}`]).text((text) => text);
    core.put(bars, { d: () => each(both[0].y, (v, at) => (Number.isFinite(v)
      ? `M${at - wide / 2},${y(0)}h${wide}V${y(v)}h${-wide}z` : "")) });
    core.put(marks, { d: () => each(both[1].y, (v, at) => (Number.isFinite(v)
      ? `M${at - wide * 0.72},${y(v)}h${wide * 1.44}` : "")) });
    const isWrong = (u) => isLost || u === Infinity;
    far.forEach(([path, wrong]) => core.put(path, { d: () => each(found, (u, at) =>
      (u && isWrong(u) === wrong ? `M${at},${rail}V${ulps(u)}` : "")) }));
    core.put(hatch, { d: () => each(found, (u, at) => (u && isWrong(u)
      ? core.stripes([at - wide / 2, at + wide / 2], [rail, ulps(u)]) : "")) });
  };
}

function histogram({ d3, core, svg, box: { bars }, data: { x: { length: n } } }) {
  const names = core.BINS.map(([, name]) => name);
  const x = d3.scaleBand(names, [bars.left, bars.right]).paddingInner(0.2);
  const y = d3.scaleLinear([0, n], [bars.bottom, bars.top + 8]);
  const group = svg.append("g").attr("aria-hidden", "true");
  const bar = group.selectAll("rect").data(names).join("rect").attr("x", x)
    .attr("width", x.bandwidth())
    .attr("class", (_, i) => `rmsn-count ${["is-same", ...Array(5).fill(""), "is-wrong"][i]}`);
  const hatch = group.append("path").attr("class", "rmsn-hatch");
  const label = (at) => group.selectAll(null).data(names).join("text").attr("y", at)
    .attr("class", "rmsn-label is-small").attr("text-anchor", "middle")
    .attr("x", (name) => x(name) + x.bandwidth() / 2);
  label(bars.bottom + 16).text((name) => name);
  const counts = label(0);
  svg.append("line").attr("class", "rmsn-stem").attr("x1", bars.left).attr("x2", bars.right)
    .attr("y1", bars.bottom).attr("y2", bars.bottom);
  return ({ both, counts: found }) => {
    const isLost = both.some((family) => family.isLost);
    group.classed("is-lost", isLost);
    core.put(bar, core.span(y, (name) => found[names.indexOf(name)]));
    core.put(counts, { y: (name) => y(found[names.indexOf(name)]) - 4 });
    counts.text((_, i) => found[i] || "");
    core.put(hatch, { d: () => found.map((v, i) => (i && (isLost || i === 6)
      ? core.stripes([x(names[i]), x(names[i]) + x.bandwidth()], [y(v), y(0)]) : "")).join("") });
  };
}

// The line that reads a feature.
function marker({ d3, core, svg, box, move, now, data }) {
  const { group, stem } = core.reader({
    d3, svg, box, move, range: [1, data.shown], step: 1, value: () => now().feature,
    label: "Feature to read",
  });
  stem.select("line").attr("stroke-dasharray", "2 3");
  return (last) => {
    const { both, types, read: { y, ulps }, feature } = last;
    core.put(stem, { transform: () => `translate(${box.x(feature)},0)` });
    const texts = both.map(({ label, type }, i) =>
      `${label} ${core.exactly(core, y[i], types[type].digits)}`);
    core.put(group, {
      "aria-valuenow": () => feature,
      "aria-valuetext": () =>
        `feature ${feature}: ${texts.join(", ")}, ${core.inUlps(core, ulps, y)}`,
    });
  };
}

export default { render };
