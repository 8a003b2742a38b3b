// "Gradient plane": RMSNorm's backward pass for two features, as arrows at the tip of x.
export const LIMIT = { x: 1.6, dy: 1.2, weight: 2, eps: 1 };
const NAMES = Object.keys(LIMIT);
const REACH = LIMIT.x + LIMIT.dy + 0.1; // of the picture, in every direction
const LOW = -3.1; // the left end of the ε slider, which stands for 0; then 10⁻³ to 1
const STEP = 0.1;
const DUST = 1e-9; // rounding, beside numbers of size 1

// --- pure: `node --test` runs it against vectors from reference.rms_norm_vjp

// Forward and backward with every number on the way; without a divisor there is no dx.
export function answers(core, { x, dy, weight, eps }) {
  const u = dy.map((v, i) => weight[i] * v);
  const size = core.rms(x, eps);
  const given = { x, dy, weight, eps, u, size, taken: core.along(u, x) };
  if (size === 0) return { ...given, unit: null, share: null, dx: null, inner: null, angle: null };
  const unit = core.times(1 / size, x);
  const share = core.mean(u.map((v, i) => v * unit[i]));
  const dx = u.map((v, i) => (v - unit[i] * share) / size);
  return {
    ...given, unit, share, dx, radial: core.along(dx, x), inner: core.dot(x, dx),
    angle: core.angle(x, dx),
  };
}

// Where the reader only made x longer or shorter: by which factor; else null.
export function stretched(core, now, start) {
  const isSame = ["dy", "weight", "eps"].every((k) => String(now[k]) === String(start[k]));
  const factor = core.dot(now.x, start.x) / core.dot(start.x, start.x);
  const off = core.length(core.minus(now.x, core.times(factor, start.x)));
  const isMoved = factor > DUST && Math.abs(factor - 1) > DUST;
  return isSame && now.eps === 0 && off < DUST && isMoved ? factor : null;
}

export const epsOf = (position) => (position < LOW + 0.05 ? 0 : 10 ** position);
export const positionOf = (eps) => (eps === 0 ? LOW : Math.max(-3, Math.log10(eps)));

export function finding(core, now, start, f2) {
  const { x, u, dx, size } = now;
  const long = (v) => core.length(v);
  if (dx === null) {
    return "At x = 0 with ε = 0 RMSNorm divides 0 by 0: there is no output and no gradient. "
      + "With any ε above 0 there is one.";
  }
  if (long(u) < DUST) return "No gradient comes in (u = 0), so none goes out: dx\u00a0=\u00a00.";
  if (long(x) === 0) {
    return "At x = 0 no direction is taken away. All of u passes, times 1/√ε = "
      + `${f2(1 / size)}. The smaller ε, the larger dx.`;
  }
  if (long(dx) < DUST) {
    return "u points along x. A longer x gives the same output, so the projector takes all of u "
      + "away: dx\u00a0=\u00a00.";
  }
  return told(core, now, start, f2);
}

function told(core, now, start, f2) {
  const [long, radial, taken] = [now.dx, now.radial, now.taken].map((v) => core.length(v));
  if (radial > DUST) {
    return "With ε the output depends on the length of x, too, so a part of dx points along x "
      + `(dotted), ${f2(radial)} long. The angle is ${now.angle.toFixed(1)}°, not 90°.`;
  }
  const factor = stretched(core, now, start);
  if (factor !== null) {
    return `x has ${f2(factor)} times its length at the start, and dx ${f2(1 / factor)} times: `
      + `${f2(long)} instead of ${f2(core.length(start.dx))} (faint).`;
  }
  const whole = `The part of u along x, ${f2(taken)} long, is taken away (dashed). `;
  if (now.weight.some((g) => g !== 1)) {
    return `The weight turns dy into u first. ${whole}Whatever the weight, dx is at a right angle `
      + "to x.";
  }
  return `${whole}What is left is divided by D: dx is ${f2(long)} long and at a right angle to x.`;
}

// --- the page
const TITLE = "dx stands at a right angle to x, and shrinks as x grows.";
const HOW = "Drag the tips of x and of dy, or reach them by Tab and move them with the arrow keys.";
const EQUATION = `<span class="rmsn-wraps"><i>dx</i> = (<i>u</i> − <i>x̂</i> <i>m</i>) / <i>D</i> =
  <b class="is-rms" data-slot="dx"></b></span>
  <span class="rmsn-steps"><span><i>u</i> = <i>g</i> ⊙ <i>dy</i></span><span data-slot="u"></span>
  <span><i>x̂</i> = <i>x</i> / <i>D</i></span><span data-slot="unit"></span>
  <span><i>m</i> = mean(<i>u</i> ⊙ <i>x̂</i>)</span><span data-slot="share"></span>
  <span><i>D</i> = √(RMS(<i>x</i>)<sup>2</sup> + <i>ε</i>)</span><span data-slot="size"></span>
  <span>⟨<i>x</i>, <i>dx</i>⟩</span><span data-slot="inner"></span>
  <span>angle of <i>x</i> and <i>dx</i></span><span data-slot="angle"></span></span>`;
const one = (f2, v) => (v === null ? "0 / 0" : f2(v));
const pair = (f2, v) => (v === null ? "0 / 0" : `(${v.map(f2).join(", ")})`);
const turn = ({ angle }) => (angle === null ? "none" : `${angle.toFixed(1)}°`);

// The state, held to what the picture can show (a link can hold anything).
function read(core, model) {
  const inside = (name) => (v) => core.clamp(v, [name === "eps" ? 0 : -LIMIT[name], LIMIT[name]]);
  const entry = (name, v) => (name === "eps" ? inside(name)(v) : v.map(inside(name)));
  return Object.fromEntries(NAMES.map((name) => [name, entry(name, model.get(name))]));
}

function render({ model, el, d3, core }) {
  const f2 = d3.format(".2f");
  const start = read(core, model);
  const first = answers(core, start);
  const set = (values) => core.change(model, values);
  const parts = build({ el, core, f2, first, start, set, now: () => last });
  let last = first;
  let picture = null;
  function update() {
    last = answers(core, read(core, model));
    picture?.(last);
    parts.update(last);
  }
  const stops = [
    core.onChange(model, NAMES, update),
    core.onWidth(parts.picture, (width) => {
      const drawn = draw({ d3, core, f2, width, first, set, now: () => last });
      picture = drawn.update;
      parts.picture.replaceChildren(drawn.el);
      update();
    }),
    parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}

// The buttons; all but the first begin from the start, so that they show what they promise.
const ideas = (core, start, set, now) => [
  ["dy along x: dx = 0", () => {
    const { x, dy } = [now(), start].find((state) => core.length(state.x) * core.length(state.dy));
    set({ x, dy: core.alignedWith(x, dy, LIMIT.dy), weight: [1, 1], eps: 0 });
  }],
  ["Double x: dx halves", () => set({ ...start, x: core.times(2, start.x), eps: 0 })],
  ["ε = 0.5: not tangent", () => set({ ...start, eps: 0.5 })],
  ["x = 0: dx = u / √ε", () => set({ ...start, x: [0, 0], eps: 0.25 })],
];

// Everything around the picture, in reading order.
function build({ el, core, f2, first, start, set, now }) {
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const { eps, gains } = sliders({ core, f2, set, now });
  const table = core.hiddenTable("The arrows and the numbers of the equation");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE), core.node("p", { class: "rmsn-how" }, HOW),
    core.node("div", { class: "rmsn-duo is-wide" }, picture, core.node("div", {}, equation, said)),
    core.node("div", { class: "rmsn-sliders" }, eps.el, ...gains.map((gain) => gain.el)),
    core.tries(ideas(core, start, set, now), () => set(start)), table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      eps.set(positionOf(last.eps));
      gains.forEach((gain, i) => gain.set(last.weight[i]));
      tell({ equation, fill, f2 }, last);
      core.say(said, finding(core, last, first, f2));
      table.set(() => rows(f2, last));
    },
  };
}

function sliders({ core, f2, set, now }) {
  const eps = core.slider({
    label: "ε (log axis)", range: [LOW, 0], step: STEP,
    format: (position) => core.number(epsOf(position)),
    onInput: (position) => set({ eps: epsOf(position) }),
  });
  eps.el.classList.add("is-row");
  const gains = [0, 1].map((i) => core.slider({
    label: `Weight g${core.small(i + 1, -1)}`, range: [-LIMIT.weight, LIMIT.weight], step: STEP,
    format: f2, onInput: (g) => set({ weight: now().weight.map((v, j) => (j === i ? g : v)) }),
  }));
  return { eps, gains };
}

function tell({ equation, fill, f2 }, last) {
  const [dx, u, unit] = [last.dx, last.u, last.unit].map((v) => pair(f2, v));
  const [share, inner] = [last.share, last.inner].map((v) => one(f2, v));
  const size = f2(last.size);
  fill({ dx, u, unit, share, inner, size, angle: turn(last) });
  equation.setAttribute("aria-label",
    `dx is u minus x hat times m, over D: ${u} minus ${unit} times ${share}, over ${size}, is `
    + `${dx}. The inner product of x and dx is ${inner}, the angle between them: ${turn(last)}.`);
}

const rows = (f2, { x, dy, weight, u, unit, dx, size }) => [
  ["x", pair(f2, x)], ["dy", pair(f2, dy)], ["weight", pair(f2, weight)], ["u", pair(f2, u)],
  ["x hat", pair(f2, unit)], ["D", f2(size)], ["dx", pair(f2, dx)],
];

// --- the picture: drawn once for a width, then only attributes change
function draw({ d3, core, f2, width, first, set, now }) {
  const box = core.plane({
    core, d3, side: Math.min(width, 420), reach: REACH,
    label: "The plane of two features: x, dy and dx as arrows",
  });
  const parts = [
    circles({ core, box }),
    arrows({ core, box, first }),
    labels({ core, box }),
    handles({ d3, core, box, f2, first, set, now }),
  ];
  return { el: box.svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

// The circle of every output, the circle through x and its tangent there.
function circles({ core, box }) {
  const { clip, side, unit, to } = box;
  core.circle(box, "is-rms").attr("r", Math.SQRT2 * unit);
  const orbit = core.circle(box, "is-input");
  const tangent = clip.append("path").attr("class", "rmsn-hair");
  return ({ x }) => {
    core.put(orbit, { r: () => core.length(x) * unit });
    core.put(tangent, { d: () => core.tangent(x, to, 2 * side) });
  };
}

// From below: dx at the start, what is taken away, x, dy, u, dx, its radial part, the right angle.
const ARROWS = {
  faint: "rmsn-arrow is-rms is-faint", taken: "rmsn-taken", x: "rmsn-arrow is-input",
  dy: "rmsn-arrow is-thin", u: "rmsn-arrow", dx: "rmsn-arrow is-rms", radial: "rmsn-radial",
  corner: "rmsn-corner-mark",
};

function arrows({ core, box: { clip, to }, first }) {
  const found = clip.selectAll(".rmsn-of").data(Object.keys(ARROWS)).join("path")
    .attr("class", (name) => ARROWS[name]);
  const dot = clip.append("circle").attr("class", "rmsn-dot is-rms").attr("r", 5);
  return (last) => {
    const drawn = paths(core, last, first, to);
    const [cx, cy] = to(last.unit ?? [0, 0]);
    core.put(found, { d: (name) => drawn[name] });
    core.put(dot, {
      cx: () => cx, cy: () => cy, visibility: () => (last.unit === null ? "hidden" : "visible"),
    });
  };
}

function paths(core, last, first, to) {
  const { x, dy, u, dx, taken, radial } = last;
  const from = (a, v) => core.arrow(to(a), to(core.plus(a, v)));
  const end = (v, part) => { // the last part of the arrow v at x
    const tip = core.plus(x, v);
    return `M${to(core.minus(tip, part))}L${to(tip)}`;
  };
  const isFaint = stretched(core, last, first) !== null;
  return {
    faint: isFaint ? from(first.x, first.dx) : "", taken: end(u, taken), x: from([0, 0], x),
    dy: from(x, dy), u: from(x, u), dx: dx ? from(x, dx) : "", radial: dx ? end(dx, radial) : "",
    corner: dx && core.length(radial) < DUST ? core.rightAngle(x, dx, to) : "",
  };
}

// Names beside their arrows: beyond the tip, or for x and x̂ on the side that u leaves free.
function labels({ core, box }) {
  const below = box.to([0, -Math.SQRT2]);
  const write = core.names(core, box, ["", "is-rms", "", "", "is-rms", "is-small is-rms"]);
  return (last) => {
    const places = spots(core, last, box.to);
    const circle = last.eps === 0 ? "every output x̂ lies on this circle"
      : "with ε every x̂ lies within";
    write([...places, core.plus(below, [0, 14])],
      ["x", "x̂", places[3] ? "dy" : "dy = u", "u", "dx", circle]);
  };
}

// Where the names of x, x̂, dy, u and dx stand, in pixels; null for one that is not shown.
function spots(core, { x, dy, u, unit, dx }, to) {
  const far = core.length(x);
  const side = x[0] * u[1] > x[1] * u[0] ? 16 : -16;
  const free = far === 0 ? [0, 0] : core.times(side / far, [x[1], x[0]]);
  const beyond = (v) => core.beyond(x, v, to);
  return [
    far > 0.2 ? core.plus(to(core.times(0.5, x)), free) : null,
    unit && core.plus(to(unit), free),
    beyond(dy), core.length(core.minus(u, dy)) < DUST ? null : beyond(u),
    dx && core.length(dx) > 0.05 ? beyond(dx) : null,
  ];
}

// The tips of x and dy; dy starts where x ends.
function handles({ d3, core, box, f2, first, set, now }) {
  const tip = (name, base) =>
    ({ name, base, start: first[name], value: () => now()[name], limit: LIMIT[name] });
  const group = core.tips({
    core, d3, box, tips: [tip("x", () => [0, 0]), tip("dy", () => now().x)],
    move: (name, point) => set({ [name]: point }),
  });
  return (last) => core.put(group, {
    transform: ({ base, value }) => `translate(${box.to(core.plus(base(), value()))})`,
    "aria-valuemin": () => 0, "aria-valuemax": () => 3,
    "aria-valuenow": ({ value }) => core.length(value()).toFixed(2),
    "aria-valuetext": ({ name, value }) => `${name} = ${pair(f2, value())}; `
      + `dx = ${pair(f2, last.dx)}`,
  });
}

export default { render };
