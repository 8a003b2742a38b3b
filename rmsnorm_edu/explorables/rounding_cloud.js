// "Rounding cloud": measured errors of a norm by the size of its input, type and convention.
const TITLE = "Inside its range a norm is wrong by a rounding or two. Outside, by everything.";
const EQUATION = `<span><i>x</i><sup>2</sup> = (2<sup data-slot="k"></sup>)<sup>2</sup> →
  <b data-slot="kept"></b></span> <span class="rmsn-aside">the largest square, in
  <span data-slot="type"></span></span>
  <span class="rmsn-aside">error <b data-slot="error"></b>, bound <b data-slot="bound"></b></span>
  <span class="rmsn-aside"><i>u</i> = 2<sup data-slot="u"></sup> of the largest output</span>`;
const NAMES = ["dtype", "convention", "eps", "exponent"];

// The state, held to what the picture can show (a link can hold anything).
function read(core, model) {
  const { types, conventions } = model.get("data");
  const one = (name, known) => (known.includes(model.get(name)) ? model.get(name) : known[0]);
  const dtype = one("dtype", Object.keys(types));
  return {
    dtype, convention: one("convention", Object.keys(conventions)),
    eps: one("eps", ["own", "zero"]),
    exponent: core.clamp(core.round(model.get("exponent"), core.STEP), core.sizesOf(types[dtype])),
  };
}

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const sizes = () => core.sizesOf(data.types[read(core, model).dtype]);
  const move = (k) =>
    core.change(model, { exponent: core.clamp(core.round(k, core.STEP), sizes()) });
  return core.live({
    core, model, names: NAMES, parts: build({ model, el, core, data, move }),
    answer: () => core.answers(data, read(core, model)),
    draw: (width, now) => draw({ d3, core, width, data, move, now }),
  });
}

const ideas = (set) => [
  ["float16 at 256", { dtype: "float16", convention: "gemma_flax", eps: "own", exponent: 8 }],
  ["float32 near 10²⁰", { dtype: "float32", convention: "torch", eps: "own", exponent: 66 }],
  ["bfloat16: LLaMA against torch",
    { dtype: "bfloat16", convention: "llama", eps: "own", exponent: 0 }],
  ["Tiny inputs, ε = 0", { dtype: "float32", convention: "torch", eps: "zero", exponent: -76 }],
].map(([text, state]) => [text, () => set(state)]);

const choices = (core, { types, conventions }, set) => ({
  dtype: core.choice("Type", Object.keys(types).map((t) => [t, t]), (dtype) => set({ dtype })),
  convention: core.choice("Convention",
    Object.entries(conventions).map(([name, c]) => [name, c.label]),
    (convention) => set({ convention })),
  eps: core.choice("ε", [["own", "its own"], ["zero", "0"]], (eps) => set({ eps })),
});

// Everything around the picture, in reading order.
function build({ model, el, core, data, move }) {
  const start = read(core, model);
  const set = (values) => core.change(model, values);
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const slider = core.slider({
    label: "Largest |x|", range: core.SIZES, step: core.STEP,
    format: (k) => core.size(core, 2 ** k), onInput: move,
  });
  slider.el.classList.add("is-wide");
  const chosen = choices(core, data, set);
  const table = core.hiddenTable("The largest error by the size of the input, in units of u");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, slider.el),
    ...Object.values(chosen).map((c) => c.el),
    core.tries(ideas(set), () => set(start)),
    table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      slider.set(last.exponent);
      Object.entries(chosen).forEach(([name, c]) => c.set(last[name]));
      tell(core, { equation, fill, data }, last);
      core.say(said, core.finding(core, data, last));
      table.set(() => rows(core, data, last));
    },
  };
}

function tell(core, { equation, fill, data }, last) {
  const [kept, error] = [core.keptSquare(core, data, last), core.inWords(core, last)];
  const [type, bound] = [core.squares(data, last).name, `${core.number(last.cell.bound)} u`];
  const [k, u] = [last.exponent, Math.log2(last.type.u)].map((v) => String(v).replace("-", "−"));
  fill({ k, kept, type, error, bound, u });
  equation.querySelector("[data-slot=error]").className = `is-${kind(last)}`;
  equation.setAttribute("aria-label", `The largest square is 2 to the power ${2 * last.exponent}; `
    + `in ${type} that is ${kept}. Error ${error}, bound ${bound}. `
    + `u is 2 to the power ${u}, of the row’s largest output.`);
}

const kind = ({ error, cell }) => (error > cell.bound ? "wrong" : "rms");

function rows(core, data, last) {
  const [low, high] = last.type.k;
  const step = high - low > 60 ? 10 : core.STEP;
  const ks = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
  const row = (name) => [data.conventions[name].label, ...ks.map((exponent) =>
    core.inWords(core, core.answers(data, { ...last, convention: name, exponent })))];
  return [["largest input", ...ks.map((k) => core.size(core, 2 ** k))], row(last.convention),
    ...(last.convention === "torch" ? [] : [row("torch")])];
}

// --- the picture: the axes once for a width, the cloud for a choice, the line for a move
function draw({ d3, core, width, data, move, now }) {
  const box = layout(d3, core, width);
  const svg = core.picture(d3, width, box.height,
    "Largest error of a row by its largest number; drag the line that reads a size");
  const scene = svg.append("g").attr("aria-hidden", "true");
  backdrop({ core, svg, box });
  const mark = marker({ d3, core, svg, box, move, now });
  const labels = svg.append("g").attr("aria-hidden", "true").attr("pointer-events", "none");
  let shown = "";
  return {
    el: svg.node(),
    update(last) {
      const key = [last.dtype, last.convention, last.eps].join(" ");
      if (key !== shown) core.cloud({ d3, core, scene, labels, box, data, last });
      shown = key;
      mark(last);
    },
  };
}

// Above the axis of errors, from `roof` down, is a rail for what is not finite.
function layout(d3, core, width) {
  const [left, right, top, tall] = [46, width - 8, 58, 310];
  const [roof, bottom] = [top + 26, top + tall];
  return {
    left, right, top, tall, bottom, roof, height: bottom + 40, isNarrow: width < 420,
    x: d3.scaleLinear(core.SIZES, [left, right]),
    y: (v, u) => (v === Infinity ? top + 12 : bottom - core.height(v, u) * (bottom - roof)),
  };
}

// The names of the axes, which no choice changes.
function backdrop({ core, svg, box: { right, bottom } }) {
  core.words(svg, 0, 12, [["", "Largest error of a row (log above 4 u)"]]);
  core.words(svg, right, bottom + 38, [["", "Largest |x| of the row (log axis)"]])
    .attr("text-anchor", "end");
}

// The line that reads a size.
function marker({ d3, core, svg, box, move, now }) {
  const { group, stem } = core.reader({
    d3, svg, box, move, range: core.SIZES, step: core.STEP, value: () => now().exponent,
    label: "Largest number of a row, as a power of two",
  });
  const label = group.append("text").attr("class", "rmsn-label is-small").attr("y", box.top - 12)
    .attr("text-anchor", "middle");
  const dot = group.append("circle").attr("class", "rmsn-dot is-rms").attr("r", 5)
    .attr("pointer-events", "none");
  return (last) => place(core, box, { group, stem, label, dot }, last);
}

function place(core, { left, right, x, y }, { group, stem, label, dot }, last) {
  const { exponent: k, error, type, rows: found } = last;
  const at = x(k);
  const text = `|x| ≤ ${core.size(core, 2 ** k)}`;
  core.put(stem, { transform: () => `translate(${at},0)` });
  core.put(label, {
    x: () => core.clamp(at, [left + 40, right - 40]),
  });
  core.typeset(label.node(), text);
  core.put(dot, {
    cx: () => at, cy: () => (found.length ? y(error, type.u) : 0),
    visibility: () => (found.length ? "visible" : "hidden"),
    class: () => `rmsn-dot is-${kind(last)}`,
  });
  core.put(group, {
    "aria-valuenow": () => k, "aria-valuetext": () => `${text}: error ${core.inWords(core, last)}`,
  });
}

export default { render };
