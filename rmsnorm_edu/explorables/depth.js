// "Depth": the size of a signal in a hundred random layers, without a norm and with two.
export const GAINS = [0.5, 2];
export const LAYERS = [1, 100];
export const HALF = { low: 2 ** -25, high: 65504 }; // float16: 0 from here down, then infinite
const SMALLEST = 2 ** -24; // that float16 has, 6e-8
const RANGE = [1e-18, 1e18]; // of the picture
const SAFE = [0.1, 10];

// --- pure: `node --test` runs it against vectors from depth.sizes

// The laws: without a norm every layer multiplies by the gain; with one only the last does.
export function sizeAt(curves, norm, gain, layer) {
  return curves[norm][layer - 1] * (norm === "none" ? gain ** layer : gain);
}

export const line = (curves, norm, gain) =>
  curves[norm].map((_, i) => sizeAt(curves, norm, gain, i + 1));

// The gain that gives the signal without a norm this size at this layer.
export const gainFor = (curves, layer, size) => (size / curves.none[layer - 1]) ** (1 / layer);

export function answers(curves, { gain, layer }) {
  const lines = Object.fromEntries(Object.keys(curves).map((n) => [n, line(curves, n, gain)]));
  const gone = lines.none.findIndex((v) => v > HALF.high || v <= HALF.low) + 1;
  const at = (values) => values[layer - 1];
  return {
    gain, layer, lines, gone: gone && gone <= layer ? gone : 0,
    sizes: { none: at(lines.none), rms: at(lines.rms), layer: at(lines.layer) },
    ones: { none: at(curves.none), rms: at(curves.rms), layer: at(curves.layer) },
    safe: SAFE.map((size) => gainFor(curves, layer, size)),
  };
}

// Two decimals, or three where they say more: 0.75, 0.994.
export const shortGain = (gain) =>
  gain.toFixed(Math.abs(gain * 100 - Math.round(gain * 100)) < 1e-6 ? 2 : 3);

// What the size means; the sizes themselves stand beside it.
export function finding({ sizes, gone, safe }) {
  const [isLarge, held] = [sizes.none > 1, "With a norm every layer starts from size 1 again."];
  if (gone && isLarge) {
    return `float16 holds nothing so large: from layer ${gone} on the signal is infinite. ${held}`;
  }
  if (gone) return `float16 rounds the signal to 0 from layer ${gone} on. ${held}`;
  if (sizes.none < SAFE[0] || sizes.none > SAFE[1]) {
    return `Without a norm the signal ${isLarge ? "grows" : "fades"}: every layer multiplies it by `
      + `the gain once more. ${held}`;
  }
  const [low, high] = safe.map((gain) => gain.toFixed(2));
  return `Without a norm only gains from ${low} to ${high} keep the size at this layer between `
    + "0.1 and 10. With one, every gain does.";
}

// --- the page
const TITLE = "Without a norm the gains of all layers multiply. With one, only the last is left.";
const EQUATION = `<span><i>s</i><sub data-slot="layer"></sub> = <span data-slot="gain"></span
  ><sup data-slot="layer"></sup> × <span data-slot="one"></span> =
  <b data-slot="none"></b></span>
  <span class="rmsn-aside">size at gain 1: <span data-slot="one"></span></span>
  <span class="rmsn-aside">RMSNorm: <span data-slot="gain"></span> ×
    <span data-slot="rmsOne"></span> = <b class="is-rms" data-slot="rms"></b></span>
  <span class="rmsn-aside">LayerNorm: <span data-slot="gain"></span> ×
    <span data-slot="layerOne"></span> = <b class="is-layer" data-slot="layerNorm"></b></span>`;

// The state, held to what the picture can show (a link can hold anything).
function read(core, model) {
  return {
    gain: core.clamp(model.get("gain"), GAINS),
    layer: core.clamp(Math.round(model.get("layer")), LAYERS),
  };
}

function render({ model, el, d3, core }) {
  const curves = model.get("curves");
  const hands = {
    move: (layer) => core.change(model, { layer: core.clamp(Math.round(layer), LAYERS) }),
  };
  return core.live({
    core, model, names: ["gain", "layer"], parts: build({ model, el, core, curves }),
    answer: () => answers(curves, read(core, model)),
    draw: (width, now) => draw({ d3, core, width, hands, now }),
  });
}

function ideas(core, curves, set) {
  const edge = core.clamp(core.round(gainFor(curves, 50, 1), 1e-5), GAINS);
  return [
    ["Gain 0.7: gone", () => set({ gain: 0.7, layer: 50 })],
    ["Gain 1.5: overflow", () => set({ gain: 1.5, layer: 50 })],
    ["The one gain that survives 50", () => set({ gain: edge, layer: 50 })],
    ["Gain 2, with a norm: flat", () => set({ gain: 2, layer: 100 })],
  ];
}

// Everything around the picture, in reading order.
function build({ model, el, core, curves }) {
  const start = read(core, model);
  const set = (values) => core.change(model, values);
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const gain = core.slider({
    label: "Gain γ", range: GAINS, step: 0.01, format: shortGain,
    onInput: (v) => set({ gain: v }),
  });
  const table = core.hiddenTable("The size of the signal by layer");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, gain.el),
    core.tries(ideas(core, curves, set), () => set(start)),
    table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      gain.set(last.gain);
      tell(core, { equation, fill }, last);
      core.say(said, finding(last));
      table.set(() => rows(core, last));
    },
  };
}

function tell(core, { equation, fill }, { gain, layer, sizes, ones }) {
  const f = core.number;
  const g = shortGain(gain);
  fill({
    layer, gain: g, one: f(ones.none), none: f(sizes.none), rmsOne: f(ones.rms),
    rms: f(sizes.rms), layerOne: f(ones.layer), layerNorm: f(sizes.layer),
  });
  equation.setAttribute("aria-label", [
    `Without a norm the size at layer ${layer} is the gain ${g} to the power ${layer}, times`,
    `the size at gain 1, ${f(ones.none)}: ${f(sizes.none)}.`,
    `With RMSNorm it is ${g} times ${f(ones.rms)}: ${f(sizes.rms)}.`,
    `With LayerNorm it is ${g} times ${f(ones.layer)}: ${f(sizes.layer)}.`,
  ].join(" "));
}

function rows(core, { lines }) {
  const layers = [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
  const row = (name, values) => [name, ...layers.map((l) => core.number(values[l - 1]))];
  return [["layer", ...layers.map(String)], row("no norm", lines.none),
    row("RMSNorm", lines.rms), row("LayerNorm", lines.layer)];
}

// --- the picture: drawn once for a width, then only attributes change
function draw({ d3, core, width, hands, now }) {
  const box = layout(d3, width);
  const svg = core.picture(d3, width, box.height,
    "Size of the signal by layer, on a logarithmic axis; drag the line that reads a layer");
  backdrop({ d3, core, svg, box });
  const parts = [
    curvesOf({ d3, core, svg, box }),
    names({ core, svg, box }),
    marker({ d3, core, svg, box, hands, now }),
  ];
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

function layout(d3, width) {
  const [left, right, top, tall] = [40, width - 82, 44, 300];
  const bottom = top + tall;
  return {
    left, right, top, tall, bottom, narrow: width < 420, height: bottom + 26,
    x: d3.scaleLinear(LAYERS, [left, right]), y: d3.scaleLog(RANGE, [bottom, top]).clamp(true),
  };
}

// Axes and their titles; what float16 cannot hold, tinted, with its edge named.
function backdrop({ d3, core, svg, box }) {
  const { left, right, top, tall, bottom, x, y, narrow } = box;
  const beyond = (edge, end, [anchor, at, below], text) => {
    svg.append("rect").attr("class", "rmsn-beyond").attr("x", left).attr("width", right - left)
      .attr("y", Math.min(edge, end)).attr("height", Math.abs(end - edge));
    svg.append("line").attr("class", "rmsn-edge").attr("x1", left).attr("x2", right)
      .attr("y1", edge).attr("y2", edge);
    text.forEach((line, i) => core.typeset(svg.append("text")
      .attr("class", "rmsn-label is-small is-wrong rmsn-halo").attr("aria-hidden", "true")
      .attr("text-anchor", anchor).attr("x", at).attr("y", edge + below + 15 * i).node(), line));
  };
  beyond(y(HALF.high), top, ["end", right - 6, -6], // where the grey line is least likely
    narrow ? ["float16: 65504"] : ["65504, float16’s largest"]);
  beyond(y(SMALLEST), bottom, ["start", left + 6, 16],
    narrow ? ["float16:", "6 × 10⁻⁸"] : ["6 × 10⁻⁸, float16’s smallest"]);
  const ticks = [-18, -12, 0, 12, 18].map((e) => 10 ** e);
  const format = (v) => (v === 1 ? "1" : core.power(v, 0).slice(4));
  core.hairlines(d3, svg, { y, ticks, left, right, format })
    .selectAll(".tick").classed("rmsn-zero", (v) => v === 1);
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(x).tickValues([1, 25, 50, 75, 100]).tickSize(5).tickPadding(4));
  core.bare(axis);
  core.words(svg, 0, 12, [["", `Size of the signal (RMS, log axis)${narrow ? "" : ": drag"
    + " to read another layer"}`]]);
  svg.append("text").attr("class", "rmsn-label is-small").attr("aria-hidden", "true")
    .attr("x", right + 16).attr("y", bottom + 18).text("layer");
}

const RADIUS = { none: 6, layer: 6.5, rms: 4 };
const NAMES = ["none", "layer", "rms"];
// From below: blue is thin, and orange looks out on both sides of it, beyond a seam of paper.
const CURVES = [["layer", "layer"], ["rms", "seam"], ["rms", "rms"], ["none", "none"]];

function curvesOf({ d3, core, svg, box: { left, right, top, tall, x } }) {
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("x", left).attr("y", top)
    .attr("width", right - left).attr("height", tall).attr("aria-hidden", "true");
  const y = d3.scaleLog(RANGE, [tall, 0]);
  const path = d3.line().x((_, i) => x(i + 1) - left).y((v) => y(v));
  const lines = clip.selectAll("path").data(CURVES).join("path")
    .attr("class", ([, kind]) => `rmsn-curve is-${kind}`);
  return (last) => core.put(lines, { d: ([name]) => path(last.lines[name]) });
}

// The names, at the right end of the lines; the grey one makes way for the other two.
function names({ core, svg, box: { right, y } }) {
  const name = (cls, text) => svg.append("text").attr("class", `rmsn-label is-small is-${cls}`)
    .attr("aria-hidden", "true").attr("x", right + 12).text(text);
  const [rms, layer, none] = [name("rms", "RMSNorm"), name("layer", "LayerNorm"),
    name("none", "no norm")];
  return ({ lines }) => {
    const [held, free] = [y(lines.rms.at(-1)), y(lines.none.at(-1))];
    const away = free > held ? Math.max(free, held + 30) : Math.min(free, held - 30);
    core.put(rms, { y: () => held - 3 });
    core.put(layer, { y: () => held + 12 });
    core.put(none, { y: () => away + 4 });
  };
}

// The line that reads a layer, with a dot on each curve.
function marker({ d3, core, svg, box, hands, now }) {
  const { group, stem } = core.reader({
    d3, svg, box, move: hands.move, range: LAYERS, step: 1, value: () => now().layer,
    label: "Layer to read",
  });
  const label = group.append("text").attr("class", "rmsn-label is-small").attr("y", box.top - 12)
    .attr("text-anchor", "middle");
  const dots = group.selectAll(".rmsn-dot").data(NAMES).join("circle")
    .attr("pointer-events", "none").attr("r", (name) => RADIUS[name])
    .attr("class", (name) => `rmsn-dot is-${name}`);
  const value = group.append("text").attr("class", "rmsn-label is-small rmsn-halo")
    .attr("pointer-events", "none");
  return (last) => place(core, box, { group, stem, label, dots, value }, last);
}

function place(core, { left, right, top, bottom, x, y }, marks, { layer, sizes }) {
  const at = x(layer);
  const f = core.number;
  const isLate = at > (left + right) / 2;
  const [flat, free] = [y(sizes.rms), y(sizes.none)];
  const [isNear, isFalling] = [Math.abs(free - flat) < 24, free > flat];
  // beside a rising line the left is free, and at its right stands the name of float16's edge
  const isLeft = isLate || (!isNear && !isFalling && at - left > 80);
  const away = (isNear === isFalling ? 22 : -12) * (isLeft && !isNear ? -1 : 1);
  core.put(marks.stem, { transform: () => `translate(${at},0)` });
  core.put(marks.dots, { cx: () => at, cy: (name) => y(sizes[name]) });
  core.put(marks.label, { x: () => at });
  core.say(marks.label.node(), `layer ${layer}`);
  core.put(marks.value, {
    x: () => at + (isLeft ? -14 : 14), "text-anchor": () => (isLeft ? "end" : "start"),
    y: () => core.clamp(free + away, [top + 24, bottom - 12]),
  });
  core.typeset(marks.value.node(), f(sizes.none));
  core.put(marks.group, {
    "aria-valuenow": () => layer,
    "aria-valuetext": () => `layer ${layer}: no norm ${f(sizes.none)}, `
      + `RMSNorm ${f(sizes.rms)}, LayerNorm ${f(sizes.layer)}`,
  });
}

export default { render };
