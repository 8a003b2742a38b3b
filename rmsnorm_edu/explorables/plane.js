// What the figures of the gradients chapter share: vectors of two numbers, drawn as arrows.

// --- pure: `node --test` runs it
export const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
export const length = (a) => Math.hypot(...a);
export const times = (k, a) => a.map((v) => k * v);
export const plus = (a, b) => a.map((v, i) => v + b[i]);
export const minus = (a, b) => a.map((v, i) => v - b[i]);

// The part of a along x: what the projector of x takes away from a.
export const along = (a, x) => times(length(x) === 0 ? 0 : dot(a, x) / dot(x, x), x);

// The vector a turned along x, as long as it was, as far as a box of ±limit allows.
export const alignedWith = (x, a, limit) =>
  times(Math.min(limit / Math.max(...x.map(Math.abs)), length(a) / length(x)), x);

// The angle between two vectors in degrees; null where one of them has no direction.
export function angle(a, b) {
  const size = length(a) * length(b);
  if (size < 1e-9) return null;
  return (180 / Math.PI) * Math.acos(Math.max(-1, Math.min(1, dot(a, b) / size)));
}

// A straight arrow as one path, its head no longer than itself.
export function arrow([x1, y1], [x2, y2], size = 10) {
  const long = Math.hypot(x2 - x1, y2 - y1);
  if (long < 1e-6) return "";
  const [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
  const head = Math.min(size, long);
  const [bx, by, wide] = [x2 - head * dx, y2 - head * dy, 0.42 * head];
  const at = (...v) => v.map((n) => n.toFixed(2)).join(",");
  return `M${at(x1, y1)}L${at(bx, by)}M${at(x2, y2)}L${at(bx - wide * dy, by + wide * dx)}`
    + `L${at(bx + wide * dy, by - wide * dx)}Z`;
}

// The sign of a right angle between x and a at x's tip; none where one is too short for it.
export function rightAngle(x, a, to, size = 0.3) {
  const [far, long] = [length(x), length(a)];
  if (Math.min(far, long) < 1.3 * size) return "";
  const [back, side] = [times(-size / far, x), times(size / long, a)];
  const at = (v) => to(plus(x, v));
  return `M${at(back)}L${at(plus(back, side))}L${at(side)}`;
}

// A place for a name beyond the tip of the arrow a at x, in pixels.
export function beyond(x, a, to) {
  const [[px, py], long] = [to(plus(x, a)), length(a)];
  return long === 0 ? [px, py] : [px + 25 * a[0] / long, py - 25 * a[1] / long];
}

const MOVES = { ArrowUp: [0, 1], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowLeft: [-1, 0] };
const [STEP, FINE] = [0.1, 0.05]; // of a key, of the hand

// What a key makes of a point: arrows one step, Shift ten, Home its start, End 0; null else.
export function keyMove({ key, shiftKey }, point, start) {
  if (key === "Home") return start;
  if (key === "End") return [0, 0];
  return MOVES[key] ? plus(point, times(STEP * (shiftKey ? 10 : 1), MOVES[key])) : null;
}

// The nearest place that the hand can set, in a box of ±limit.
export const held = (core, point, limit) =>
  point.map((v) => core.clamp(core.round(v, FINE), [-limit, limit]));

// --- the picture
// A square 2 · reach wide with its zero at `origin` (fractions of it), its scales `to` pixels and
// `from` them, and a layer that is cut at its edge.
export function plane({ core, d3, side, reach, label, origin = [0.5, 0.5] }) {
  const svg = core.picture(d3, side, side, label);
  const unit = side / (2 * reach);
  const [left, top] = times(side, origin);
  svg.append("rect").attr("class", "rmsn-column").attr("rx", 5)
    .attr("width", side).attr("height", side);
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("aria-hidden", "true")
    .attr("width", side).attr("height", side);
  clip.append("path").attr("class", "rmsn-hair").attr("d", `M0,${top}h${side}M${left},0v${side}`);
  return {
    svg, clip, side, unit, to: ([a, b]) => [left + a * unit, top - b * unit],
    from: ({ x, y }) => [(x - left) / unit, (top - y) / unit],
  };
}

// A circle round the zero of the plane, and the tangent to one at the vector x, `far` pixels long.
export function circle({ clip, to }, cls) {
  const [cx, cy] = to([0, 0]);
  return clip.append("circle").attr("class", `rmsn-round ${cls}`).attr("cx", cx).attr("cy", cy);
}

export function tangent([a, b], to, far) {
  const [[px, py], size] = [to([a, b]), length([a, b])];
  if (size === 0) return "";
  const [tx, ty] = [far * b / size, far * a / size];
  return `M${px - tx},${py - ty}l${2 * tx},${2 * ty}`;
}

// Names in the picture, one for each class; the function writes them at places, null for hidden.
export function names(core, { clip, side }, classes) {
  const texts = classes.map((cls) => clip.append("text").attr("text-anchor", "middle")
    .attr("class", `rmsn-label rmsn-halo ${cls}`));
  const inside = (v) => core.clamp(v, [14, side - 14]);
  return (places, words) => texts.forEach((text, i) => {
    core.put(text, { visibility: () => (places[i] ? "visible" : "hidden") });
    if (!places[i]) return;
    core.put(text, { x: () => inside(places[i][0]), y: () => inside(places[i][1]) + 4 });
    core.say(text.node(), words[i]);
  });
}

// Tips that the hand and the keyboard move: `tips` are { name, start, base(), value(), limit };
// `move(name, point)` gets where one is to go. Returns the group of each, to be put in its place.
export function tips({ core, d3, box: { svg, from }, tips: all, move }) {
  const group = svg.selectAll(".rmsn-tip").data(all).join("g").attr("class", "rmsn-tip")
    .attr("tabindex", 0).attr("role", "slider").attr("aria-roledescription", "arrow")
    .attr("aria-label", ({ name }) => `${name}: arrow keys, Shift for ten steps, Home for its `
      + "start, End for 0")
    .style("touch-action", "none")
    .on("keydown", (event, { name, start, value, limit }) => {
      const next = keyMove(event, value(), start);
      if (next === null) return;
      event.preventDefault();
      move(name, held(core, next, limit));
    })
    .call(core.drag(d3, svg, (event, { name, base, limit }) =>
      move(name, held(core, minus(from(event), base()), limit))));
  group.append("circle").attr("class", "rmsn-ring").attr("r", 13);
  return group;
}
