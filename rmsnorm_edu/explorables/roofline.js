// "Roofline": what a norm computes for each byte that it moves, under the roof of a chip.
const [X, Y] = [[0.02, 1500], [1e8, 1e16]]; // flop/byte, flop/s
const TITLE = "No norm reaches the flat part of the roof.";
const EQUATION = `<span><i>I</i></span><span>= <span data-slot="flops"></span> /
    <span data-slot="bytes"></span> = <b data-slot="x"></b></span>
  <span>time</span><span>≥ <span data-slot="bytes"></span> / (<span data-slot="speed"></span>)
    = <b data-slot="floor"></b></span>
  <span class="rmsn-wide rmsn-aside" data-slot="items"></span>
  <span class="rmsn-wide rmsn-aside" data-slot="seen"></span>`;
const NAMES = ["operation", "chip", "dtype", "rows", "n", "programs"];

// The state, held to what the controls can give (a link can hold anything).
function read(core, model) {
  const data = model.get("data");
  const one = (name, known) => (known.includes(model.get(name)) ? model.get(name) : known[0]);
  return {
    operation: one("operation", Object.keys(data.passes)), dtype: one("dtype", ["float32",
      "float16", "bfloat16"]), chip: one("chip", Object.keys(data.chips)),
    rows: one("rows", core.ROWS), n: one("n", core.WIDTHS),
    programs: one("programs", core.PROGRAMS),
  };
}

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const choose = (operation) => core.change(model, { operation });
  return core.live({
    core, model, names: NAMES, parts: build({ model, el, core, data }),
    answer: () => core.answers(data, read(core, model)),
    draw: (width, now) => draw({ d3, core, width, data, choose, now }),
  });
}

const BASE = { chip: "H100", dtype: "bfloat16", rows: 8192, n: 4096, programs: 0 };
const ideas = (set) => [
  ["Each operation apart", { ...BASE, operation: "forward_unfused" }],
  ["One row", { ...BASE, operation: "forward", rows: 1 }],
  ["A program for each row", { ...BASE, operation: "backward", rows: 512, programs: 528 }],
].map(([text, state]) => [text, () => set(state)]);

// A slider over a list of values.
function listed(core, { label, values, name, set }) {
  const made = core.slider({
    label, range: [0, values.length - 1], step: 1, format: (at) => String(values[at]),
    onInput: (at) => set({ [name]: values[at] }),
  });
  return { el: made.el, set: (value) => made.set(values.indexOf(value)) };
}

const sliders = (core, set) => [
  ["rows", "rows", core.ROWS], ["n", "n", core.WIDTHS], ["programs", "programs", core.PROGRAMS],
].map(([name, label, values]) => [name, listed(core, { label, values, name, set })]);

// Buttons for the operation, the way it is done, the chip and the type.
function choices(core, { data, set, now }) {
  const { families, ways, chips, bytes } = data;
  const inFamily = (family, way) => {
    const named = Object.fromEntries(families[family].ways);
    return named[way] ?? named.fused;
  };
  const family = () => Object.keys(families).find((name) => families[name] === now().family);
  return {
    family: core.choice("Operation", Object.entries(families).map(([k, f]) => [k, f.label]),
      (name) => set({ operation: inFamily(name, now().way) })),
    way: core.choice("Way", Object.entries(ways),
      (way) => set({ operation: inFamily(family(), way) })),
    chip: core.choice("Chip", Object.entries(chips).map(([key, c]) => [key, c.name]),
      (chip) => set({ chip })),
    dtype: core.choice("Type", Object.keys(bytes).map((t) => [t, t]), (dtype) => set({ dtype })),
    familyName: family,
  };
}

// Everything around the picture, in reading order.
function build({ model, el, core, data }) {
  const start = read(core, model);
  const set = (values) => core.change(model, values);
  let last = null;
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation rmsn-costs", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const { familyName, ...chosen } = choices(core, { data, set, now: () => last });
  const ranges = sliders(core, set);
  const table = core.hiddenTable("Bytes, least time and intensity by operation");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    chosen.family.el, core.node("div", { class: "rmsn-both" }, chosen.way.el, chosen.dtype.el),
    core.node("div", { class: "rmsn-sliders" }, ...ranges.map(([, made]) => made.el)),
    chosen.chip.el,
    core.tries(ideas(set), () => set(start)),
    table.el));
  const ways = [...chosen.way.el.querySelectorAll("button")];
  return {
    picture,
    stop: table.stop,
    update(now) {
      last = now;
      ranges.forEach(([name, made]) => made.set(now[name]));
      ranges.at(-1)[1].el.hidden = !data.partials[now.operation];
      Object.keys(data.ways).forEach((way, i) => {
        ways[i].hidden = !now.family.ways.some(([name]) => name === way);
      });
      const values = { ...now, family: familyName() };
      Object.entries(chosen).forEach(([name, c]) => c.set(values[name]));
      tell(core, { equation, fill }, now);
      core.say(said, core.finding(data, now));
      table.set(() => rowsOf(core, data, now));
    },
  };
}

// What was measured at this very shape, in words; "" where nothing was.
function seen(core, { bars, operation }) {
  const found = bars.find((bar) => bar.operation === operation).points;
  if (found.length !== 1) return "";
  return `${core.si(found[0].seconds, "s")} reported by ${found[0].by}`;
}

function tell(core, { equation, fill }, last) {
  const { chosen, hardware } = last;
  const texts = {
    flops: core.si(chosen.flops, "flop"), bytes: core.si(chosen.bytes, "B"),
    x: `${core.flop(chosen.x)} flop/B`, speed: core.si(hardware.bandwidth, "B/s"),
    floor: core.si(chosen.floor, "s"), seen: seen(core, last), items: core.counted(chosen),
  };
  fill(texts);
  equation.setAttribute("aria-label", `Intensity: ${texts.flops} over ${texts.bytes} is ${texts.x}. `
    + `Least time: ${texts.bytes} over ${texts.speed} is ${texts.floor}. ${texts.items}. ${texts.seen}`);
}

function rowsOf(core, data, last) {
  const name = ({ operation }) => {
    const { label, ways } = core.familyOf(data, operation);
    return `${label}, ${data.ways[ways.find(([, found]) => found === operation)[0]]}`;
  };
  return [["operation", "flop/byte", "bytes", `least time, ${last.hardware.name}`],
    ...last.all.map((found) => [name(found), core.flop(found.x), core.si(found.bytes, "B"),
      core.si(found.floor, "s")]),
    ["the chosen one", core.itemised(last.chosen)],
    ...last.points.map((p) => [`${p.operation}, ${p.rows} × ${p.n}, by ${p.by}`,
      core.si(p.seconds, "s")])];
}

// --- the picture: the roof above, the bytes of the chosen operation below
function draw({ d3, core, width, data, choose, now }) {
  const box = layout(d3, width);
  const svg = core.picture(d3, width, box.height,
    "Attainable flop/s by flop for each byte, both on logarithmic axes, and the bytes as bars");
  backdrop({ d3, core, svg, box });
  const parts = [
    roofs({ core, svg, box }), points({ core, svg, box }),
    marker({ d3, core, svg, box, choose, now, count: Object.keys(data.passes).length }),
    core.bars({ d3, core, svg, box, data, choose }),
  ];
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

function layout(d3, width) {
  const [left, right, top, tall] = [4, width - 6, 44, width < 420 ? 230 : 268];
  const x = d3.scaleLog(X, [left, right]).clamp(true);
  return {
    left, right, top, tall, bottom: top + tall, isNarrow: width < 420, x,
    y: d3.scaleLog(Y, [top + tall, top]).clamp(true), bars: top + tall + 62, height: top + tall + 250,
  };
}

function backdrop({ d3, core, svg, box: { left, right, bottom, x, y } }) {
  const named = { 1e9: "1 Gflop/s", 1e12: "1 Tflop/s", 1e15: "1 Pflop/s" };
  core.hairlines(d3, svg, { y, ticks: [1e9, 1e12, 1e15], left, right, format: (v) => named[v] })
    .selectAll("text").attr("x", 0).attr("dy", "-0.4em").attr("text-anchor", "start");
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(x).tickValues([0.1, 1, 10, 100, 1000]).tickSize(5).tickPadding(4)
      .tickFormat(String));
  core.bare(axis);
  core.words(svg, 0, 12, [["", "The most flop/s that a chip allows (log axis)"]]);
  core.words(svg, right, bottom + 38, [["", "I, flop for each byte moved (log axis)"]])
    .attr("text-anchor", "end");
}

// The chosen chip: its slope, the flat part of the type, and that of float32, where norms compute.
function roofs({ core, svg, box: { left, right, top, tall, isNarrow, x, y } }) {
  const group = svg.append("g").attr("aria-hidden", "true");
  const clip = group.append("svg").attr("class", "rmsn-clip").attr("x", left).attr("y", top)
    .attr("width", right - left).attr("height", tall);
  const [own, other] = ["rmsn-roof", "rmsn-roof is-other"].map((cls) =>
    clip.append("path").attr("class", cls));
  const [slope, flat, below] = [["start"], ["end"], ["end"]].map(([anchor]) =>
    group.append("text").attr("class", "rmsn-label is-small rmsn-halo").attr("x", right - 2)
      .attr("text-anchor", anchor));
  const at = (v, rate) => `${x(v) - left},${y(rate) - top}`;
  return ({ hardware, dtype }) => {
    const { bandwidth: speed } = hardware;
    const [rate, wide] = [dtype, "float32"].map((t) => core.peak(hardware, t));
    const corner = Math.min(rate / speed, X[1]);
    core.put(own, { d: () => `M${at(X[0], speed * X[0])}L${at(corner, speed * corner)}`
      + (rate < Infinity ? `L${at(X[1], rate)}` : "") });
    core.put(other, { d: () => (wide < rate ? `M${at(wide / speed, wide)}L${at(X[1], wide)}` : "") });
    core.put(slope, { x: () => x(isNarrow ? 3 : 4), y: () => y(speed * 4) + 20 });
    core.say(slope.node(), `memory: ${core.si(speed, "B/s")}`);
    const label = (text, v, type, dy) => {
      core.put(text, { y: () => (v < Infinity ? y(v) + dy : top + tall - 30) });
      core.say(text.node(), v < Infinity ? `${core.si(v, "flop/s")}, ${type}` : "");
    };
    label(flat, rate, dtype, -7);
    label(below, wide < rate ? wide : Infinity, "float32", 15); // over the line the slope rises
    if (Math.min(rate, wide) === Infinity) core.say(flat.node(), "no flat part: no rate is cited");
  };
}

// Times that were measured, each under the roof by what is lost.
function points({ core, svg, box: { x, y } }) {
  const group = svg.append("g").attr("aria-hidden", "true");
  const key = svg.append("text").attr("class", "rmsn-label is-small").attr("y", 30)
    .attr("aria-hidden", "true");
  return ({ points: found, operation, hardware }) => {
    const marks = group.selectAll("path").data(found).join("path");
    core.put(marks, {
      d: (p) => `M${x(p.x)},${y(p.rate) - 4.5}l4.5,4.5l-4.5,4.5l-4.5,-4.5Z`,
      "class": (p) => `rmsn-point${p.operation === operation ? " is-own" : ""}`,
    });
    const by = [...new Set(found.map((p) => p.by))].join(", ");
    core.say(key.node(), found.length === 0 ? ""
      : hardware.isRecorded ? "◆ recorded" : `◆ reported by ${by}`);
  };
}

function marker({ d3, core, svg, box, count, choose, now }) {
  const { x, y } = box;
  const invert = (px) => now().all.reduce((best, { x: v }, i) =>
    (Math.abs(x(v) - px) < Math.abs(x(now().all[best].x) - px) ? i : best), 0);
  const { group, stem } = core.reader({
    d3, svg, box: { ...box, x: { invert } }, move: (at) => choose(now().all[at].operation),
    range: [0, count - 1], step: 1,
    value: () => now().all.findIndex((found) => found.operation === now().operation),
    label: "Operation, by its flop for each byte",
  });
  const dots = group.append("g").attr("pointer-events", "none");
  const label = group.append("text").attr("class", "rmsn-label is-small rmsn-halo")
    .attr("pointer-events", "none");
  const gap = group.append("g").attr("pointer-events", "none");
  const far = gap.append("path").attr("class", "rmsn-gap");
  const times = gap.append("text").attr("class", "rmsn-label is-small rmsn-halo");
  return (last) => {
    const { all, chosen, hardware, dtype, family, operation } = last;
    core.put(stem, { transform: () => `translate(${x(chosen.x)},0)` });
    const near = all.filter((found) => found.operation !== operation).concat(chosen);
    const isNear = (found) => family.ways.some(([, name]) => name === found.operation);
    core.put(dots.selectAll("circle").data(near).join("circle"), {
      cx: (found) => x(found.x), cy: (found) => y(core.roof(hardware, dtype, found.x)),
      r: (found) => (found === chosen ? 6.5 : isNear(found) ? 5 : 3),
      "class": (found) => `rmsn-place ${found === chosen ? "is-chosen " : ""}${isNear(found)
        ? core.colourOf(found.operation) : "is-none"}`,
    });
    core.put(label, { x: () => x(chosen.x) + 10, y: () => box.bottom - 12 });
    core.say(label.node(), `${core.flop(chosen.x)} flop/byte`);
    const top = Math.min(core.peak(hardware, "float32"), core.peak(hardware, dtype));
    const [low, high] = [y(core.roof(hardware, dtype, chosen.x)), top < Infinity ? y(top) : 0];
    const ridge = x(top / hardware.bandwidth); // the words end before it
    core.put(gap, { visibility: () => (high ? "visible" : "hidden") });
    core.put(far, { d: () => `M${x(chosen.x) - 4},${low - 9}V${high}H${ridge}` });
    const words = `${core.flop(top / hardware.bandwidth / chosen.x)} times${
      box.isNarrow ? "" : " below"}`;
    core.put(times, {
      x: () => Math.min(x(chosen.x) + 6, ridge - 6 * words.length), y: () => high - 6,
    });
    core.say(times.node(), words);
    core.put(group, {
      "aria-valuenow": () => all.indexOf(chosen),
      "aria-valuetext": () => `${family.label}, ${last.way}: ${core.flop(chosen.x)} flop a byte, at `
        + `most ${core.si(core.roof(hardware, dtype, chosen.x), "flop/s")}`,
    });
  };
}

export default { render };
