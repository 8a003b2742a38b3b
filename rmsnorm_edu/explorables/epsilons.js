// "Four epsilons": the size of the output against the size of the input, for four files.
export const EXPONENTS = [-8, 2];
const STEP = 0.1;
const LETTER = 6.5; // pixels of a label's
const DASHES = ["", "9 4", "2 4", "9 4 2 4"]; // one family, one colour

// --- pure: `node --test` runs it against vectors from reference.py

// RMS(y) of an input of RMS s.
export const output = ({ eps, outside }, s) =>
  (outside ? s / (s + eps) : s / Math.sqrt(s * s + eps));

// Where the output starts to fall: the input that eps is as large as.
export const knee = ({ eps, outside }) => (outside ? eps : Math.sqrt(eps));

export function answers(files, exponent) {
  const size = 10 ** exponent;
  const found = files.map((file) => output(file, size));
  return { exponent, size, found, factor: Math.max(...found) / Math.min(...found) };
}

// The size of the input; whole powers are written as such: 10⁻⁵, 3.2 × 10⁻⁴, 0.1, 5.01.
export function inputSize(core, exponent) {
  if (Number.isInteger(exponent) && Math.abs(exponent) <= 1) return String(10 ** exponent);
  if (!Number.isInteger(exponent) && Math.abs(exponent) < 2) return core.number(10 ** exponent);
  if (Number.isInteger(exponent)) return `10${core.small(exponent, 1)}`;
  return core.power(10 ** exponent);
}

export function finding(core, files, { exponent, found, factor }) {
  const start = `An input of size ${inputSize(core, exponent)}: `;
  if (Math.min(...found) > 0.9995) return `${start}all four files give 1.00.`;
  const fine = files.map((file) => file.name).filter((_, i) => found[i] > 0.9);
  const far = factor < 1.1 ? `up to ${(100 * (factor - 1)).toPrecision(1)}%`
    : `a factor of ${core.number(factor)}`;
  const apart = `The answers are ${far} apart.`;
  if (fine.length === files.length) return `${start}all four give nearly 1. ${apart}`;
  if (fine.length === 0) return `${start}no file normalises it any more. ${apart}`;
  const names = fine.join(", ").replace(/, ([^,]*)$/, " and $1");
  return `${start}${names} still normalise${fine.length > 1 ? "" : "s"} it. ${apart}`;
}

// Moves heights, in rising order, down to where each is `gap` below the one before.
export function stacked(heights, gap) {
  const order = heights.map((_, i) => i).sort((i, j) => heights[i] - heights[j]);
  const placed = [...heights];
  order.slice(1).forEach((i, k) => {
    placed[i] = Math.max(placed[i], placed[order[k]] + gap);
  });
  return placed;
}

// --- the page
const TITLE = "Four files of 2019, one norm, and four answers to a small input.";

// The state, held to what the axis can show (a link can hold anything).
const read = (core, model) =>
  core.round(core.clamp(model.get("exponent"), EXPONENTS), STEP);

function render({ model, el, d3, core }) {
  const files = model.get("files");
  const parts = build({ model, el, core, files });
  const move = (exponent) =>
    core.change(model, { exponent: core.clamp(core.round(exponent, STEP), EXPONENTS) });
  let last = null;
  let picture = null;
  function update() {
    last = answers(files, read(core, model));
    picture?.(last);
    parts.update(last);
  }
  const stops = [
    core.onChange(model, ["exponent"], update),
    core.onWidth(parts.picture, (width) => {
      const drawn = draw({ d3, core, width, files, move, now: () => last });
      picture = drawn.update;
      parts.picture.replaceChildren(drawn.el);
      update();
    }),
    parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}

const ideas = (set) => [
  ["10⁻⁵: four answers", () => set(-5)],
  ["10⁻²: only one is 5% off", () => set(-2)],
  ["1: all agree", () => set(0)],
  ["10⁻⁸: nobody normalises", () => set(-8)],
];

// Everything around the picture, in reading order.
function build({ model, el, core, files }) {
  const start = read(core, model);
  const set = (exponent) => core.change(model, { exponent });
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation rmsn-answers", role: "math" });
  const fill = core.slots(equation, equations(core, files));
  const said = core.node("output", { class: "rmsn-finding", "aria-live": "polite" });
  const input = core.slider({
    label: "RMS(x)", range: EXPONENTS, step: STEP, format: (v) => inputSize(core, v),
    onInput: set,
  });
  input.el.classList.add("is-wide");
  const table = core.hiddenTable("The size of the output by the size of the input");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, input.el),
    core.tries(ideas(set), () => set(start)),
    table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      input.set(last.exponent);
      tell(core, { equation, fill, files }, last);
      core.say(said, finding(core, files, last));
      table.set(() => rows(core, files));
    },
  };
}

const epsilon = (core, { eps }) => inputSize(core, Math.log10(eps));

// One row for each file: its line, its name, its formula, its answer.
function equations(core, files) {
  const row = (file, i) => {
    const e = epsilon(core, file);
    const divisor = file.outside ? `(<i>s</i> + ${e})` : `√(<i>s</i>² + ${e})`;
    return `<svg width="26" height="10" aria-hidden="true"><path class="rmsn-curve is-rms"
        stroke-dasharray="${DASHES[i]}" d="M0,5h26"/></svg><span>${file.name}</span>
      <span><i>s</i> / ${divisor}</span><span>= <b class="is-rms" data-slot="${i}"></b></span>`;
  };
  return `<span class="rmsn-wide"><i>s</i> = RMS(<i>x</i>) = <b data-slot="s"></b></span>
    ${files.map(row).join("")}`;
}

function tell(core, { equation, fill, files }, { exponent, found }) {
  const s = inputSize(core, exponent);
  fill({ s, ...found.map((v) => core.number(v)) });
  const each = files.map((file, i) => `${file.name}, epsilon ${epsilon(core, file)} `
    + `${file.outside ? "outside" : "inside"} the root: ${core.number(found[i])}`);
  equation.setAttribute("aria-label", `RMS of x is ${s}. ${each.join(". ")}.`);
}

function rows(core, files) {
  const exponents = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2];
  const row = (file) => exponents.map((e) => core.number(output(file, 10 ** e)));
  return [["input", ...exponents.map((e) => inputSize(core, e))],
    ...files.map((file) => [file.name, ...row(file)])];
}

// --- the picture: drawn once for a width, then only attributes change
function draw({ d3, core, width, files, move, now }) {
  const box = layout(d3, width);
  const svg = core.picture(d3, width, box.height,
    "Size of the output against size of the input, both on logarithmic axes");
  backdrop({ d3, core, svg, box });
  curves({ d3, svg, box, files });
  const mark = marker({ d3, core, svg, box, files, move, now });
  return { el: svg.node(), update: mark };
}

function layout(d3, width) {
  const [left, right, top, tall] = [40, width - 12, 26, 300];
  const bottom = top + tall;
  return {
    left, right, top, tall, bottom, narrow: width < 420, height: bottom + 46,
    x: d3.scaleLinear(EXPONENTS, [left, right]), y: d3.scaleLog([1e-6, 4], [bottom, top]),
  };
}

// The way to the right of all lines at a height of the picture.
function clearance(d3, { x, y }, files) {
  const steps = d3.range(...EXPONENTS, 0.05);
  const lowest = steps.map((e) => Math.min(...files.map((file) => output(file, 10 ** e))));
  return (height) => x(steps[lowest.findIndex((v) => v > y.invert(height))] ?? EXPONENTS[1]);
}

const whole = (core, exponent) => (exponent === 0 ? "1" : core.power(10 ** exponent, 0).slice(4));

function backdrop({ d3, core, svg, box: { left, right, bottom, x, y } }) {
  const ticks = [-6, -4, -2, 0].map((e) => 10 ** e);
  const format = (v) => whole(core, Math.round(Math.log10(v)));
  core.hairlines(d3, svg, { y, ticks, left, right, format })
    .selectAll(".tick").classed("rmsn-zero", (v) => v === 1);
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(x).tickValues([-8, -6, -4, -2, 0, 2]).tickSize(5).tickPadding(4)
      .tickFormat((e) => whole(core, e)));
  axis.select(".domain").remove();
  core.words(svg, 0, 12, [["", "Size of the output, RMS(y) (log axis)"], ["is-rms", "○ knee"]]);
  core.words(svg, right, bottom + 40, [["", "Size of the input, RMS(x) (log axis)"]])
    .attr("text-anchor", "end");
}

// The four lines, and a ring at each one's knee.
function curves({ d3, svg, box: { x, y }, files }) {
  const steps = d3.range(EXPONENTS[0], EXPONENTS[1] + 0.01, 0.05);
  const group = svg.append("g").attr("aria-hidden", "true").selectAll("g").data(files).join("g");
  group.append("path").attr("class", "rmsn-curve is-rms")
    .attr("stroke-dasharray", (_, i) => DASHES[i])
    .attr("d", (file) => d3.line().x(x).y((e) => y(output(file, 10 ** e)))(steps));
  group.append("circle").attr("class", "rmsn-knee").attr("r", 4)
    .attr("cx", (file) => x(Math.log10(knee(file))))
    .attr("cy", (file) => y(output(file, knee(file))));
}

function marker({ d3, core, svg, box, files, move, now }) {
  const { group, stem } = core.reader({
    d3, svg, box, move, range: EXPONENTS, step: STEP, value: () => now().exponent,
    label: "Size of the input, as a power of ten",
  });
  const answer = group.append("g").attr("pointer-events", "none").selectAll("g").data(files)
    .join("g");
  answer.append("path").attr("class", "rmsn-lead");
  answer.append("circle").attr("class", "rmsn-dot is-rms").attr("r", 5);
  answer.append("text").attr("class", "rmsn-label is-small is-rms rmsn-halo");
  const clear = clearance(d3, box, files);
  return (last) => place(core, box, { group, stem, answer, files, clear }, last);
}

// What is written at the dots: one text for all files where they agree, "" for the other three.
export function named(core, files, found) {
  const texts = found.map(core.number);
  if (texts.every((text) => text === texts[0])) {
    return texts.map((text, i) => (i === 0 ? `all four ${text}` : ""));
  }
  return texts.map((text, i) => `${files[i].name} ${text}`);
}

// Where the answers are written: the largest above its line, the others below 1 and, where there
// is room, to the right of all lines.
export function labels({ right, x, y, clear }, { exponent, found }, texts) {
  const at = x(exponent);
  const top = found.findIndex((v) => v > 0.9995 * Math.max(...found));
  const heights = stacked(
    found.map((v, i) => (i === top ? y(1) - 10 : Math.max(y(v) + 4, y(1) + 18))), 17);
  return heights.map((height, i) => {
    const wide = texts[i].length * LETTER;
    const from = i === top ? at + 12 : Math.max(at + 12, clear(height - 10) + 8);
    if (from + wide <= right + 12) return { x: from, y: height, anchor: "start" };
    const isClear = i === top || at - 12 - wide > clear(height - 10);
    if (isClear) return { x: at - 12, y: height, anchor: "end" };
    return { x: right + 12 - wide, y: height, anchor: "start" };
  });
}

function place(core, box, { group, stem, answer, files, clear }, last) {
  const { exponent, found } = last;
  const at = box.x(exponent);
  const heights = found.map(box.y);
  const texts = named(core, files, found);
  const places = labels({ ...box, clear }, last, texts);
  const of = (f) => (file) => f(files.indexOf(file));
  core.put(stem, { transform: () => `translate(${at},0)` });
  core.put(answer.select("circle"), { cx: () => at, cy: of((i) => heights[i]) });
  core.put(answer.select("path"), {
    d: of((i) => (texts[i] === "" || places[i].x <= at + 12 ? ""
      : `M${at},${heights[i]}L${places[i].x - 4},${places[i].y - 4}`)),
  });
  core.put(answer.select("text"), {
    x: of((i) => places[i].x), y: of((i) => places[i].y),
    "text-anchor": of((i) => places[i].anchor),
  });
  answer.select("text").each((_, i, all) => core.say(all[i], texts[i]));
  core.put(group, {
    "aria-valuenow": () => exponent,
    "aria-valuetext": () => `${inputSize(core, exponent)}: ${texts.filter(Boolean).join(", ")}`,
  });
}

export default { render };
