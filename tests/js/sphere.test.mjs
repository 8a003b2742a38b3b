import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [helpers, space, sphere] = await Promise.all(["core", "space", "sphere"].map(load));
const core = { ...helpers, ...space };
const { cloud, cases, views } = vectors("sphere");
const start = {
  x: [[1.9, -0.4, 0.9], [0.2, 1.6, 0.7], [-1.7, 0.4, -0.2], [0.5, -1.2, -0.8]],
  scale: 1, shift: 0, norm: "both", morph: 1, turn: 20, tilt: 20,
};
const still = sphere.crowd(core, cloud, start);
const answers = (state) =>
  sphere.answers(core, state, sphere.crowd(core, cloud, state), still);
const said = (state) =>
  sphere.finding(core, answers({ ...start, ...state }), (v) => v.toFixed(2));

test("the outputs and their angle to the axis are those of rmsnorm_edu.reference", () => {
  for (const { scale, shift, rms, layer, degrees } of cases) {
    const found = answers({ ...start, scale, shift });
    near(found.points.map((p) => p.rms), rms);
    near(found.points.map((p) => p.layer), layer);
    near(found.degrees, degrees);
    found.points.forEach((p) => near(Math.hypot(...p.rms), core.RADIUS));
  }
});

test("an example of equal features has no LayerNorm, zero neither norm", () => {
  const even = sphere.norms(core, [0.3, 0.3, 0.3], { scale: 1, shift: 0.4 });
  near(even.rms, [1, 1, 1]);
  assert.deepEqual(even.layer, [NaN, NaN, NaN]);
  assert.deepEqual(sphere.norms(core, [2, -1, 0.5], { scale: 0, shift: 0 }).rms, [NaN, NaN, NaN]);
});

test("a view is that of the turned axes; a step on the screen leads back", () => {
  for (const { turn, tilt, axes } of views) {
    near(core.view(turn, tilt), axes);
    near(core.project(axes, core.unproject(core.view(turn, tilt), [0.3, -1.2, 2])), [0.3, -1.2, 2]);
  }
});

test("a circle of latitude lies on the sphere at its angle, and its two arcs are the whole", () => {
  const axes = core.view(33, 21);
  const axis = core.project(axes, [1, 1, 1].map((v) => v / Math.sqrt(3)));
  for (const latitude of [-60, 0, 30]) {
    const points = core.circle(axes, latitude, 2, 36);
    points.forEach((p) => near(Math.hypot(...p), 2));
    const height = points.map((p) => p.reduce((sum, v, i) => sum + v * axis[i], 0));
    near(height, points.map(() => 2 * Math.sin((latitude * Math.PI) / 180)));
    const drawn = [true, false].map((isFront) => core.arc(points, isFront, (p) => p.join(" ")));
    assert.ok(drawn.join("").match(/[ML]/g).length >= points.length);
  }
});

test("dots are sorted by depth; what is no number is left out", () => {
  const points = [[0, 0, -5], [1, 1, -0.1], [2, 2, 0.1], [3, 3, 5], [NaN, NaN, NaN]];
  const found = core.dots(points, 2, 4, (p) => `${p[0]} ${p[1]}`);
  assert.deepEqual(found, ["M0 0h.01", "M1 1h.01", "M2 2h.01", "M3 3h.01"]);
});

test("a handle follows the hand whatever the scale, and stays in its range", () => {
  for (const scale of [1, -2, 0.5]) {
    const state = { ...start, scale, tilt: 0, turn: 0 };
    const moved = sphere.moveHandle(core, start.x, 1, [0, Math.sqrt(3), 0], state);
    near(moved[1], start.x[1].map((v) => v + 1 / scale)); // up is (1, 1, 1)
    assert.deepEqual([moved[0], moved[2]], [start.x[0], start.x[2]]);
  }
  assert.equal(sphere.moveHandle(core, start.x, 0, [1, 1, 1], { ...start, scale: 0 }), start.x);
  assert.equal(sphere.moveHandle(core, start.x, 0, [90, 0, 0], { ...start, turn: 0 })[0][0], 4);
});

test("angles wrap", () => {
  assert.deepEqual([190, -190, 180, 20, 365].map(sphere.wrap), [-170, 170, -180, 20, 5]);
});

test("the finding says what the norms do", () => {
  const [first, , , crowd] = cases;
  assert.match(said({}), /sphere of radius √3 = 1\.73\. .*on the equator, 90° from/);
  assert.match(said({ shift: 3 }), new RegExp(`now ${crowd.degrees.toFixed(0)}° from .*before, `
    + `${first.degrees.toFixed(0)}°\\. LayerNorm’s stay`));
  assert.match(said({ scale: -1, shift: 3 }), /LayerNorm’s go to the opposite side of the equator/);
  assert.match(said({ scale: 0.3 }), /^Scaled by 0\.3: no output moves/);
  assert.match(said({ scale: -1 }), /^Scaled by −1: each output goes through the centre/);
  assert.match(said({ tilt: 90 }), /^You look down .* outline/);
  assert.match(said({ morph: 0 }), /^The input: its RMS goes from \d\.\d\d to \d\.\d\d\. Morph/);
  assert.match(said({ morph: 0, scale: 3 }), /farthest points lie beyond the picture/);
  assert.match(said({ scale: 0 }), /all points are at zero: 0 \/ 0/);
  assert.match(said({ scale: 0, shift: 1 }), /RMSNorm sends it to the pole/);
  assert.match(said({ x: [[0, 0, 0], ...start.x.slice(1)] }), /^Point A is at zero/);
  assert.match(said({ x: [...start.x.slice(1), [0.3, 0.3, 0.3]] }), /^Point D is on the axis/);
});

test("a point beyond the frame is held on its ray, and beside its neighbour", () => {
  const { grips } = space;
  const [inside, high, next, low] = grips([[50, 60], [60, -200], [62, -200], [50, 400]], [100, 100]);
  assert.deepEqual(inside, { spot: ["50.0", "60.0"], isBeyond: false });
  assert.deepEqual(high, { spot: ["51.5", "12.0"], isBeyond: true }); // 50 + 10 · 38 / 250
  assert.deepEqual(next.spot, ["71.5", "12.0"]);
  assert.deepEqual(low.spot, ["50.0", "88.0"]);
});
