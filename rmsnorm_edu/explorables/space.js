// What a figure in three dimensions needs: a view of space whose "up" is (1, 1, 1), the circles of
// latitude of a sphere about that axis, dots by depth.

// --- pure: `node --test` runs it against vectors from NumPy
export const RADIUS = Math.sqrt(3);
const DEGREE = Math.PI / 180;
const E = [ // right-handed and orthonormal; the last one is the axis
  [1, -1, 0].map((v) => v / Math.sqrt(2)), [1, 1, -2].map((v) => v / Math.sqrt(6)),
  [1, 1, 1].map((v) => v / Math.sqrt(3)),
];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const mix = (a, s, b, t) => a.map((v, i) => s * v + t * b[i]);

// Right, up and towards the eye, for degrees of turning about the axis and of tilting it forward:
// tilt 0 sees the axis upright, tilt 90 looks down on its end.
export function view(turn, tilt) {
  const [a, b] = [turn * DEGREE, tilt * DEGREE];
  const right = mix(E[0], Math.cos(a), E[1], Math.sin(a));
  const near = mix(E[0], Math.sin(a), E[1], -Math.cos(a));
  return [right, mix(near, -Math.sin(b), E[2], Math.cos(b)),
    mix(near, Math.cos(b), E[2], Math.sin(b))];
}

export const project = (axes, p) => axes.map((axis) => dot(axis, p));

// The way in space of a step on the screen: so far right, up and towards the eye.
export const unproject = (axes, step) =>
  [0, 1, 2].map((i) => axes.reduce((sum, axis, k) => sum + step[k] * axis[i], 0));

// The circle at a latitude about the axis, as [right, up, near] of `n` + 1 points.
export function circle(axes, latitude, radius, n = 72) {
  const [r, h] = [Math.cos(latitude * DEGREE), Math.sin(latitude * DEGREE)].map((v) => v * radius);
  const [a, b, c] = E.map((e) => project(axes, e));
  return Array.from({ length: n + 1 }, (_, k) => {
    const [x, y] = [r * Math.cos((2 * Math.PI * k) / n), r * Math.sin((2 * Math.PI * k) / n)];
    return a.map((v, i) => x * v + y * b[i] + h * c[i]);
  });
}

// A spot in a frame, or where its ray from the middle leaves the frame, 12 pixels before the edge.
export function held(spot, size) {
  const way = spot.map((v, i) => v - size[i] / 2);
  const share = Math.min(1, ...way.map((v, i) => (size[i] / 2 - 12) / Math.abs(v)));
  return [...way.map((v, i) => size[i] / 2 + share * v), share < 1];
}

// Spots in a frame, those that lie beyond it held at its edge, side by side where they would meet.
export function grips(spots, size) {
  const all = spots.map((spot) => held(spot, size));
  const far = all.filter(([, , isBeyond]) => isBeyond).sort((a, b) => a[0] - b[0]);
  far.forEach((spot, i) => {
    const last = far[i - 1];
    if (last && Math.abs(last[1] - spot[1]) < 20) spot[0] = Math.max(spot[0], last[0] + 20);
  });
  return all.map(([x, y, isBeyond]) => ({ spot: [x, y].map((v) => v.toFixed(1)), isBeyond }));
}

// --- paths: each takes `at`, which gives the pixels "x y" of [right, up]

// The part of a circle that is in front of the centre (or behind it), as one path.
export function arc(points, isFront, at) {
  let isOn = false;
  return points.map((p) => {
    const command = isOn ? "L" : "M";
    isOn = p[2] >= 0 === isFront;
    return isOn || command === "L" ? command + at(p) : "";
  }).join("");
}

// Dots of some depth in one path each: `layers` paths from the farthest to the nearest.
export function dots(points, radius, layers, at) {
  const paths = Array(layers).fill("");
  for (const p of points) {
    if (!Number.isFinite(p[0])) continue;
    const depth = Math.floor(((p[2] / radius + 1) / 2) * layers);
    paths[Math.min(layers - 1, Math.max(0, depth))] += `M${at(p)}h.01`;
  }
  return paths;
}

// The straight way from the input to the output.
export const between = (p, y, t) => p.map((v, i) => v + t * (y[i] - v));

// --- the picture: drawn once for a width, then only attributes change
const LAYERS = 4; // of dots behind the centre, and as many in front of it
const NAMES = ["rms", "layer"];
const KEYS = {
  ArrowRight: [1, 0, 0], ArrowLeft: [-1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0],
  PageUp: [0, 0, -1], PageDown: [0, 0, 1],
};

// The step of a key as [right, up, towards the eye], ten times with Shift; null for other keys.
const keyStep = ({ key, shiftKey }) => KEYS[key]?.map((v) => v * (shiftKey ? 10 : 1)) ?? null;

export function space({ d3, core, width, hands, tell, now }) {
  const radius = Math.min(140, width * 0.3);
  const box = { width, radius, height: radius * 2.75, unit: radius / RADIUS };
  const place = (p) => [width / 2 + p[0] * box.unit, box.height / 2 - p[1] * box.unit];
  const at = (p) => place(p).map((v) => v.toFixed(1)).join(" ");
  const svg = core.picture(d3, width, box.height, "The points, the sphere and its equator");
  svg.classed("rmsn-space", true);
  const shared = { d3, core, svg, box, hands, tell, now, place, at };
  const orbit = turntable(shared);
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("aria-hidden", "true")
    .attr("width", width).attr("height", box.height);
  const [back, front] = globe({ ...shared, clip });
  const parts = [orbit, back, front, labels(shared), handles({ ...shared, clip })];
  return {
    el: svg.node(),
    update(last) {
      const axes = view(last.turn, last.tilt);
      svg.attr("class", `rmsn-space shows-${last.norm}`)
        .style("--mix", `${Math.round(100 * last.morph)}%`);
      const spots = last.handles.map(({ p }) => place(project(axes, p)));
      const held = grips(spots, [width, box.height]);
      parts.forEach((part) => part(last, axes, held));
    },
  };
}

// The ground turns the view: dragged anywhere, or by the arrow keys. Only on the sphere does a
// finger turn it both ways; beside it, it scrolls the page up and down.
function turntable({ d3, core, svg, box, hands, now }) {
  const group = svg.append("g").attr("class", "rmsn-orbit").attr("tabindex", 0)
    .attr("role", "slider").attr("aria-label", "View: arrow keys turn and tilt, Home resets")
    .attr("aria-valuemin", -180).attr("aria-valuemax", 180)
    .on("keydown", (event) => {
      const step = keyStep(event);
      if (step) hands.look(now().turn - 5 * step[0], now().tilt + 5 * step[1]);
      else if (event.key === "Home") hands.front();
      else return;
      event.preventDefault();
    });
  group.append("rect").attr("class", "rmsn-ring").attr("rx", 6).attr("x", 1).attr("y", 1)
    .attr("width", box.width - 2).attr("height", box.height - 2);
  const turn = core.drag(d3, svg, ({ dx, dy }) => {
    if (dx || dy) hands.look(now().turn - dx / 2, now().tilt + dy / 2);
  });
  const hit = (tag, how) => group.append(tag).attr("class", "rmsn-hit").call(turn)
    .style("touch-action", how);
  hit("rect", "pan-y").attr("width", box.width).attr("height", box.height);
  hit("circle", "none").attr("cx", box.width / 2).attr("cy", box.height / 2).attr("r", box.radius);
  return ({ turn: a, tilt: b }) => core.put(group, {
    "aria-valuenow": () => Math.round(a),
    "aria-valuetext": () => `turned ${Math.round(a)}°, tilted ${Math.round(b)}°`,
  });
}

// The dots and the lines behind the centre, a veil over them, those in front of it.
function globe({ core, clip, box, at }) {
  const half = (isFront) => {
    const group = clip.append("g").attr("class", isFront ? "is-front" : "is-back");
    const path = (cls) => group.append("path").attr("class", cls);
    const lines = path("rmsn-latitude");
    const equator = path("rmsn-equator");
    const rod = path("rmsn-rod");
    const clouds = NAMES.map((name) => group.append("g").attr("class", `rmsn-cloud is-${name}`)
      .selectAll("path").data(Array.from({ length: LAYERS }, (_, i) => i)).join("path")
      .attr("class", (i) => `is-layer-${i}`)
      .attr("stroke-width", (i) => 2.6 + 0.5 * (i + (isFront ? LAYERS : 0))));
    return { isFront, lines, equator, rod, clouds };
  };
  const back = half(false);
  clip.append("circle").attr("class", "rmsn-globe").attr("cx", box.width / 2)
    .attr("cy", box.height / 2).attr("r", box.radius);
  return [back, half(true)].map((part) => (last, axes) => {
    const ring = (latitude) => arc(circle(axes, latitude, RADIUS), part.isFront, at);
    core.put(part.lines, { d: () => [-60, -30, 30, 60].map(ring).join("") });
    core.put(part.equator, { d: () => ring(0) });
    core.put(part.rod, { d: () => rod(axes, part.isFront, at) });
    cloud({ core, part, last, axes, at });
  });
}

// The axis: from pole to pole it is behind the veil, outside on the side where it comes out.
function rod(axes, isFront, at) {
  const end = (length) => at(project(axes, [1, 1, 1].map((v) => v * length)));
  const isUp = axes[2][0] + axes[2][1] + axes[2][2] >= 0; // its end at (1, 1, 1) is the nearer one
  const parts = isFront === isUp ? [[1, 1.3]] : [[-1.3, -1]];
  if (!isFront) parts.push([-1, 1]);
  return parts.map(([from, to]) => `M${end(from)}L${end(to)}`).join("");
}

function cloud({ core, part, last, axes, at }) {
  NAMES.forEach((name, k) => {
    const shown = last.norm === name || last.norm === "both" ? last.points : [];
    const points = shown.map(({ p, ...y }) => project(axes, between(p, y[name], last.morph)));
    const paths = dots(points, RADIUS, 2 * LAYERS, at);
    core.put(part.clouds[k], { d: (i) => paths[i + (part.isFront ? LAYERS : 0)] });
  });
}

// The names: of the poles, of the equator, of the coordinate axes.
function labels({ core, svg, box, place }) {
  const text = (cls, words) => svg.append("text").attr("class", `rmsn-label is-small ${cls}`)
    .attr("aria-hidden", "true").attr("pointer-events", "none").text(words);
  const x = box.width / 2 + box.radius + 8;
  text("is-layer rmsn-halo", "equator").attr("x", x).attr("y", box.height / 2 + 4);
  text("is-rms rmsn-halo", "sphere").attr("x", box.width / 2 - box.radius * 0.74 - 6)
    .attr("y", box.height / 2 + box.radius * 0.74 + 6).attr("text-anchor", "end");
  const pole = text("rmsn-halo", "(1, 1, 1)");
  return (last, axes, held) => {
    const [left, top] = place(project(axes, [1.36, 1.36, 1.36]));
    const low = held.some(({ isBeyond }) => isBeyond) ? 36 : 14; // below the letters at the edge
    core.put(pole, { x: () => left + 8, y: () => core.clamp(top + 8, [low, box.height - 6]) });
  };
}

// The points A to D: grips at the input, lines to the outputs, and a ring where an output stood
// before scale and shift. What is beyond the frame is held at its edge.
function handles({ d3, core, svg, clip, box, hands, tell, now, at }) {
  const marks = NAMES.map((name) => answersOf({ core, clip, name, at }));
  const group = svg.selectAll(".rmsn-point").data([0, 1, 2, 3]).join("g")
    .attr("class", "rmsn-point").attr("tabindex", 0).attr("role", "slider")
    .attr("aria-label", (i) => `Point ${"ABCD"[i]}: arrow keys move it across the view, `
      + "Page Up and Page Down away and near")
    .attr("aria-valuemin", 0).attr("aria-valuemax", 16)
    .on("focus", (_, i) => hands.choose(i))
    .on("keydown", (event, i) => onKey({ event, i, hands, now }))
    .call(grab({ d3, core, svg, box, hands, now }));
  group.append("circle").attr("class", "rmsn-hit").attr("r", 16);
  group.append("circle").attr("class", "rmsn-grip").attr("r", 8);
  group.append("text").attr("class", "rmsn-letter").attr("text-anchor", "middle").attr("y", 4)
    .text((i) => "ABCD"[i]);
  const note = svg.append("text").attr("class", "rmsn-label is-small rmsn-halo")
    .attr("aria-hidden", "true").attr("pointer-events", "none").attr("text-anchor", "end")
    .attr("x", box.width).attr("y", box.height - 6).text("○ beyond the picture");
  return (last, axes, held) => {
    const isFar = held.some(({ isBeyond }) => isBeyond);
    core.put(note, { visibility: () => (isFar ? "visible" : "hidden") });
    core.put(group.classed("is-chosen", (i) => i === last.chosen)
      .classed("is-beyond", (i) => held[i].isBeyond), {
      transform: (i) => `translate(${held[i].spot})`,
      "aria-valuenow": (i) => +core.rms(last.handles[i].p).toFixed(2),
      "aria-valuetext": (i) => says(core, tell, last.handles[i]),
    });
    marks.forEach((mark) => mark(last, axes, held));
  };
}

const says = (core, { f2, point }, { p, rms, layer }) =>
  `x = ${point(p)}, RMS ${f2(core.rms(p))}, mean ${f2(core.mean(p))}; RMSNorm ${point(rms)}, `
  + `LayerNorm ${point(layer)}`;

function onKey({ event, i, hands, now }) {
  const step = keyStep(event);
  if (step) hands.move(i, now().x, step.map((v) => 0.1 * v * Math.abs(now().scale)));
  else if (event.key === "Home") hands.home(i);
  else return;
  event.preventDefault();
}

// A drag in the plane of the view, counted from its first touch, so that no rounding adds up.
function grab({ d3, core, svg, box, hands, now }) {
  let from;
  return core.drag(d3, svg, ({ type, x, y }, i) => {
    if (type === "start") from = { x, y, all: now().x };
    else hands.move(i, from.all, [(x - from.x) / box.unit, (from.y - y) / box.unit, 0]);
  });
}

function answersOf({ core, clip, name, at }) {
  const group = clip.append("g").attr("class", `rmsn-image is-${name}`);
  const [way, was] = ["rmsn-way", "rmsn-stood is-away"].map((cls) =>
    group.append("path").attr("class", cls));
  const spot = group.append("path").attr("class", "rmsn-spot");
  return (last, axes, held) => {
    const isShown = last.norm === name || last.norm === "both";
    const all = last.handles.map((point, i) => ({ ...point, ...held[i] }))
      .filter((point) => isShown && Number.isFinite(point[name][0]));
    const to = ({ p, ...y }) => at(project(axes, between(p, y[name], last.morph)));
    const stood = isShown && last.moved[name] > 0.02 ? last.before : [];
    core.put(way, { d: () => all.map((h) => `M${h.spot}L${to(h)}`).join("") });
    core.put(spot, { d: () => all.map((h) => `M${to(h)}h.01`).join("") });
    core.put(was, { d: () => stood.map((h) => circleAt(at(project(axes, h[name])))).join("") });
  };
}

const circleAt = (spot) => `M${spot}m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0`;
