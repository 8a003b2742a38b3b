// "Four epsilons": the size of the output against the size of the input, for four files.
export const EXPONENTS = [-8, 2];
const STEP = 0.1;
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

// What the answers mean; the answers themselves stand beside it.
export function finding(core, files, { found, factor }) {
  if (Math.min(...found) > 0.9995) return "ε is too small to be seen: all four files agree.";
  const named = (isIn) => files.map((file) => file.name).filter((_, i) => isIn(found[i]))
    .join(", ").replace(/, ([^,]*)$/, " and $1");
  const fine = named((v) => v > 0.9);
  const best = named((v) => v === Math.max(...found));
  const worst = named((v) => v === Math.min(...found));
  if (fine === "") {
    return `Only ${best}, with ε outside the root, still gives half of the size or more. `
      + "In the other three ε drowns the input.";
  }
  if (factor < 1.1) {
    return `All four still normalise it, up to ${(100 * (factor - 1)).toPrecision(1)}% apart.`;
  }
  const verb = fine.includes(" and ") ? "normalise" : "normalises";
  const less = factor < 2 ? `${Math.round(100 * (1 - 1 / factor))}%`
    : `${core.number(factor)} times`;
  return `${fine} still ${verb} this input. With the same weights ${worst}’s answer is ${less} `
    + "smaller.";
}

// --- the page
const TITLE = "Four files of 2019, one norm, and four answers to a small input.";

// The state, held to what the axis can show (a link can hold anything).
const read = (core, model) =>
  core.round(core.clamp(model.get("exponent"), EXPONENTS), STEP);

function render({ model, el, d3, core }) {
  const files = model.get("files");
  const move = (exponent) =>
    core.change(model, { exponent: core.clamp(core.round(exponent, STEP), EXPONENTS) });
  return core.live({
    core, model, names: ["exponent"], parts: build({ model, el, core, files }),
    answer: () => answers(files, read(core, model)),
    draw: (width, now) => draw({ d3, core, width, files, move, now }),
  });
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

// ε outside the root is another law, and a heavier line.
const line = (file) => `rmsn-curve is-rms${file.outside ? " is-heavy" : ""}`;

const epsilon = (core, { eps }) => inputSize(core, Math.log10(eps));

// One row for each file: its line, its name, its formula, its answer.
function equations(core, files) {
  const row = (file, i) => {
    const e = core.markup(epsilon(core, file));
    const divisor = file.outside ? `(<i>s</i> + ${e})` : `√(<i>s</i><sup>2</sup> + ${e})`;
    return `<svg width="26" height="10" aria-hidden="true"><path class="${line(file)}"
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
  const [left, right, top, tall] = [76, width - 12, 26, 300]; // at the left the lines' names
  const bottom = top + tall;
  return {
    left, right, top, tall, bottom, height: bottom + 46,
    x: d3.scaleLinear(EXPONENTS, [left, right]), y: d3.scaleLog([1e-6, 4], [bottom, top]),
  };
}

const whole = (core, exponent) => (exponent === 0 ? "1" : core.power(10 ** exponent, 0).slice(4));

function backdrop({ d3, core, svg, box: { left, right, bottom, x, y } }) {
  const ticks = [-6, -4, -2, 0].map((e) => 10 ** e);
  const format = (v) => whole(core, Math.round(Math.log10(v)));
  core.hairlines(d3, svg, { y, ticks, left, right, format })
    .call((g) => g.selectAll(".tick").classed("rmsn-zero", (v) => v === 1))
    .selectAll("text").attr("x", right - left).attr("dy", "-0.4em").attr("text-anchor", "end");
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(x).tickValues([-8, -6, -4, -2, 0, 2]).tickSize(5).tickPadding(4)
      .tickFormat((e) => whole(core, e)));
  core.bare(axis);
  core.words(svg, 0, 12, [["", "Size of the output, RMS(y) (log axis)"]]);
  core.words(svg, right, bottom + 40, [["", "Size of the input, RMS(x) (log axis)"]])
    .attr("text-anchor", "end");
}

// The four lines with their names at the left ends, and a ring at each one's knee.
function curves({ d3, svg, box: { left, x, y }, files }) {
  const steps = d3.range(EXPONENTS[0], EXPONENTS[1] + 0.01, 0.05);
  const group = svg.append("g").attr("aria-hidden", "true").selectAll("g").data(files).join("g");
  group.append("path").attr("class", line).attr("stroke-dasharray", (_, i) => DASHES[i])
    .attr("d", (file) => d3.line().x(x).y((e) => y(output(file, 10 ** e)))(steps));
  group.append("circle").attr("class", "rmsn-knee").attr("r", 4)
    .attr("cx", (file) => x(Math.log10(knee(file))))
    .attr("cy", (file) => y(output(file, knee(file))));
  const label = (at, text) =>
    at.append("text").attr("class", "rmsn-label is-small is-rms").text(text);
  label(group, (file) => file.name).attr("text-anchor", "end").attr("x", left - 8)
    .attr("y", (file) => y(output(file, 10 ** EXPONENTS[0])) + 4);
  const last = files.reduce((a, b) => (knee(b) > knee(a) ? b : a));
  label(svg, "knee").classed("rmsn-halo", true).attr("aria-hidden", "true")
    .attr("x", x(Math.log10(knee(last))) + 8).attr("y", y(output(last, knee(last))) + 14);
}

function marker({ d3, core, svg, box, files, move, now }) {
  const { group, stem } = core.reader({
    d3, svg, box, move, range: EXPONENTS, step: STEP, value: () => now().exponent,
    label: "Size of the input, as a power of ten",
  });
  const dots = group.selectAll(".rmsn-dot").data(files).join("circle").attr("r", 5)
    .attr("class", "rmsn-dot is-rms").attr("pointer-events", "none");
  return (last) => place(core, box, { group, stem, dots, files }, last);
}

function place(core, { x, y }, { group, stem, dots, files }, { exponent, found }) {
  const at = x(exponent);
  core.put(stem, { transform: () => `translate(${at},0)` });
  core.put(dots, { cx: () => at, cy: (file) => y(found[files.indexOf(file)]) });
  const answers = files.map((file, i) => `${file.name} ${core.number(found[i])}`);
  core.put(group, {
    "aria-valuenow": () => exponent,
    "aria-valuetext": () => `${inputSize(core, exponent)}: ${answers.join(", ")}`,
  });
}

export default { render };
