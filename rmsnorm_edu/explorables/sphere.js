// "Sphere": points in three dimensions, RMSNorm's sphere and LayerNorm's equator.
const RANGE = { x: [-4, 4], scale: [-3, 3], morph: [0, 1], turn: [-180, 180], tilt: [-90, 90] };
const STEP = 0.1;
const SEEN = 0.005;
const NORMS = { rms: "RMSNorm", layer: "LayerNorm" };
const STILL = { scale: 1, shift: 0 };
const HANDLES = [0, 1, 2, 3];
const AXIS = "(1,\u00a01,\u00a01)";
const letter = (i) => "ABCD"[i];

// --- pure: `node --test` runs it against vectors from reference.py

// LayerNorm, or 0 / 0 where the features are equal but for what rounding leaves.
export function layerNorm(core, p) {
  const isEqual = core.rms(core.centred(p)) <= 1e-12 * core.rms(p);
  return isEqual ? p.map(() => NaN) : core.layerNorm(p);
}

// A point after scale and shift, and what both norms make of it.
export function norms(core, x, { scale, shift }) {
  const p = x.map((v) => v * scale + shift);
  return { p, rms: core.rmsNorm(p), layer: layerNorm(core, p) };
}

// Degrees between an output of RMSNorm and (1, 1, 1): its mean is the cosine.
export const angle = (core, y) =>
  (Math.acos(core.clamp(core.mean(y), [-1, 1])) * 180) / Math.PI;

// All points of the cloud after scale and shift, their smallest and largest RMS, and RMSNorm's mean
// angle to the axis.
export function crowd(core, cloud, move) {
  const points = cloud.map((x) => norms(core, x, move));
  const sizes = points.map(({ p }) => core.rms(p));
  return {
    points, sizes: [Math.min(...sizes), Math.max(...sizes)],
    degrees: core.mean(points.map(({ rms }) => angle(core, rms))),
  };
}

// Of a state, and of the crowds that it and no move make.
export function answers(core, state, { points, sizes, degrees }, start) {
  const moved = (norm) =>
    Math.max(...points.map((p, i) => core.distance(p[norm], start.points[i][norm])));
  return {
    ...state, points, sizes, degrees, were: start.degrees,
    handles: state.x.map((x) => norms(core, x, state)),
    before: state.x.map((x) => norms(core, x, STILL)),
    moved: { rms: moved("rms"), layer: moved("layer") },
  };
}

export function finding(core, last, f2) {
  const lost = last.handles.findIndex(({ p }) => p.every((v) => v === 0));
  if (last.scale !== 0 && lost >= 0) {
    return `Point ${letter(lost)} is at zero: no size to divide by, no direction to keep.`;
  }
  if (last.scale === 0) return nothing(last.shift);
  const even = last.handles.findIndex(({ layer }) => !Number.isFinite(layer[0]));
  if (even >= 0) {
    return `Point ${letter(even)} is on the axis: its features are equal. RMSNorm sends it to a `
      + "pole, LayerNorm has nothing left to divide.";
  }
  if (last.morph === 0) {
    return `The input: its RMS goes from ${last.sizes.map(f2).join(" to ")}. `
      + `${last.sizes[1] > 2.5 ? "The farthest points lie beyond the picture. " : ""}`
      + "Morph to 1: both norms divide the size away.";
  }
  if (last.tilt === 90 && last.shift === 0 && last.scale === 1) {
    return `You look down ${AXIS}. All points of LayerNorm lie on the outline: their mean is 0, `
      + "nothing of them points to you.";
  }
  return effect(last);
}

const nothing = (shift) => (shift === 0
  ? "Scaled by 0, all points are at zero: 0 / 0, for both norms."
  : "Scaled by 0, all points are one, on the axis. RMSNorm sends it to the pole, LayerNorm has "
    + "nothing left to divide: 0 / 0.");

const short = (v) => String(v).replace("-", "−");

function effect({ scale, shift, moved, degrees, were }) {
  if (scale === 1 && shift === 0) {
    return "RMSNorm sends every point along its ray to the sphere of radius √3 = 1.73. LayerNorm "
      + `takes the mean away first: what is left lies on the equator, 90° from ${AXIS}.`;
  }
  if (shift === 0) {
    return scale > 0 ? `Scaled by ${short(scale)}: no output moves. Each point stays on its ray.`
      : `Scaled by ${short(scale)}: each output goes through the centre to the opposite side.`;
  }
  const stays = moved.layer < SEEN ? "LayerNorm’s stay on the equator, where they were."
    : "LayerNorm’s go to the opposite side of the equator.";
  return `RMSNorm’s points are now ${degrees.toFixed(0)}° from ${AXIS} on average; before, `
    + `${were.toFixed(0)}°. ${stays}`;
}

// The handles after a step on the screen (right, up, towards the eye) of the point i, from x;
// scaling by 0 holds all points where they are.
export function moveHandle(core, x, i, step, { scale, turn, tilt }) {
  if (scale === 0) return x;
  const way = core.unproject(core.view(turn, tilt), step);
  const place = (v, k) => core.clamp(core.round(v + way[k] / scale, 0.01), RANGE.x);
  return x.map((point, j) => (j === i ? point.map(place) : point));
}

// Degrees held between −180 and 180.
export const wrap = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;

// --- the page
const TITLE = "RMSNorm puts every point on a sphere. LayerNorm puts it on that sphere’s equator.";
const HOW = "Drag the picture, or press the arrow keys on it, to turn it. Drag A to D to move "
  + "them.";
const EQUATION = `<span><span data-slot="name"></span>:
    <i>x</i> = <span data-slot="x"></span></span>
  <span class="rmsn-aside">RMSNorm: <i>x</i> / <span data-slot="size"></span>
    <span class="rmsn-result">= <b class="is-rms" data-slot="rms"></b></span></span>
  <span class="rmsn-aside">LayerNorm: (<i>x</i> − <span data-slot="mean"></span>) /
    <span data-slot="spread"></span>
    <span class="rmsn-result">= <b class="is-layer" data-slot="layer"></b></span></span>`;

// The state, held to what the controls can show (a link can hold anything).
function read(core, model) {
  const flat = model.get("x").map((v) => core.clamp(v, RANGE.x));
  const held = (key, range = key) => core.clamp(model.get(key), RANGE[range]);
  return {
    x: HANDLES.map((i) => flat.slice(3 * i, 3 * i + 3)),
    scale: held("scale"), shift: held("shift", "scale"), morph: held("morph"),
    turn: held("turn"), tilt: held("tilt"),
    norm: NORMS[model.get("norm")] ? model.get("norm") : "both",
  };
}

function render({ model, el, d3, core }) {
  const f2 = d3.format(".2f");
  const point = (p) => (p.every(Number.isFinite) ? `(${p.map(f2).join(", ")})` : "0 / 0");
  const tell = { f2, point };
  const set = ({ x, ...values }) => core.change(model, x ? { ...values, x: x.flat() } : values);
  const start = read(core, model);
  const solve = solver(core, model.get("cloud"));
  const parts = build({ el, core, start, set, tell });
  let chosen = 0;
  let last = null;
  let picture = null;
  const update = () => {
    last = { ...solve(read(core, model)), chosen };
    picture?.update(last);
    parts.update(last);
  };
  const choose = (i) => {
    chosen = i;
    update();
  };
  const hands = { choose, ...moves({ core, set, start, now: () => last }) };
  const stops = [
    core.onChange(model, ["x", "scale", "shift", "norm", "morph", "turn", "tilt"], update),
    core.onWidth(parts.picture, (width) => {
      picture = core.space({ d3, core, width, hands, tell, now: () => last });
      parts.picture.replaceChildren(picture.el);
      update();
    }),
    parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}

// `answers` of a state; the cloud is computed again only where scale or shift are new.
function solver(core, cloud) {
  const still = crowd(core, cloud, STILL);
  let kept = { ...STILL, ...still };
  return (state) => {
    const { scale, shift } = state;
    if (kept.scale !== scale || kept.shift !== shift) {
      kept = { scale, shift, ...crowd(core, cloud, state) };
    }
    return answers(core, state, kept, still);
  };
}

// What a hand on the picture does.
const moves = ({ core, set, start, now }) => ({
  move: (i, x, step) => set({ x: moveHandle(core, x, i, step, now()) }),
  home: (i) => set({ x: now().x.map((p, j) => (j === i ? start.x[i] : p)) }),
  look: (turn, tilt) => set({ turn: wrap(turn), tilt: core.clamp(tilt, RANGE.tilt) }),
  front: () => set({ turn: start.turn, tilt: start.tilt }),
});

const ideas = (set, start) => {
  const go = (values) => () => set({ ...start, norm: "both", morph: 1, ...values });
  return [
    ["Shift by 3: to the pole", go({ shift: 3 })],
    ["Look down (1, 1, 1)", go({ tilt: 90 })],
    ["× −1: opposite side", go({ scale: -1 })],
    ["× 0.3: nothing moves", go({ scale: 0.3 })],
  ];
};

// Everything around the picture, in reading order.
function build({ el, core, start, set, tell }) {
  const { f2 } = tell;
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const slider = (key, label, range, marks) => core.slider({
    label, marks, range, step: key === "morph" ? 0.02 : STEP, format: f2,
    onInput: (v) => set({ [key]: v }),
  });
  const morph = slider("morph", "Morph", RANGE.morph, []);
  const scale = slider("scale", "× scale", RANGE.scale, [0, 1]);
  const shift = slider("shift", "+ shift", RANGE.scale, [0]);
  const show = choice(core, set);
  const table = core.hiddenTable("The four points and what the norms make of them");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE), core.node("p", { class: "rmsn-how" }, HOW),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    core.node("div", { class: "rmsn-sliders" }, morph.el, show.el, scale.el, shift.el),
    core.tries(ideas(set, start), () => set(start)), table.el));
  return {
    picture, stop: table.stop,
    update(last) {
      [[morph, "morph"], [scale, "scale"], [shift, "shift"], [show, "norm"]]
        .forEach(([part, key]) => part.set(last[key]));
      const texts = live(core, tell, last);
      fill(texts);
      equation.setAttribute("aria-label", texts.words);
      core.say(said, finding(core, last, f2));
      table.set(() => rows(last, tell));
    },
  };
}

// Which norm is shown: three buttons, one of them pressed.
function choice(core, set) {
  const names = { rms: "● RMSNorm", layer: "■ LayerNorm", both: "both" };
  const buttons = Object.keys(names).map((norm) =>
    core.button(names[norm], () => set({ norm }), `answer is-${norm}`));
  return {
    el: core.node("div", { class: "rmsn-guess", role: "group", "aria-label": "Norm to show" },
      ...buttons),
    set: (norm) => buttons.forEach((b, i) =>
      b.setAttribute("aria-pressed", Object.keys(names)[i] === norm)),
  };
}

// The texts of the equation for the chosen handle; the same in words for a screen reader.
function live(core, { f2, point }, { handles, chosen }) {
  const { p, rms, layer } = handles[chosen];
  const [size, mean, spread] = [core.rms(p), core.mean(p), core.rms(core.centred(p))].map(f2);
  return {
    name: letter(chosen), x: point(p), size, spread, rms: point(rms), layer: point(layer),
    mean: mean.startsWith("−") ? `(${mean})` : mean,
    words: `Point ${letter(chosen)}, x = ${point(p)}. RMSNorm: x over ${size} is ${point(rms)}. `
      + `LayerNorm: x minus ${mean}, over ${spread}, is ${point(layer)}.`,
  };
}

const rows = ({ handles, degrees }, { f2 }) => [
  ...handles.flatMap(({ p, ...y }, i) => [["input", p], ["RMSNorm", y.rms], ["LayerNorm", y.layer]]
    .map(([name, v]) => [`point ${letter(i)}, ${name}`, ...v.map(f2)])),
  ["mean angle of RMSNorm’s points to (1, 1, 1), degrees", degrees.toFixed(1)],
];

export default { render };
