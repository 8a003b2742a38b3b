import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const modules = await Promise.all(["core", "plane", "gradient_plane"].map(load));
const core = Object.assign({}, ...modules.slice(0, 2));
const figure = modules[2];
const cases = vectors("gradient_plane");
const f2 = (v) => v.toFixed(2);
const START = { x: [0.8, 0.6], dy: [0.3, 1.1], weight: [1, 1], eps: 0 };
const at = (state) => figure.answers(core, { ...START, ...state });
const said = (state) => figure.finding(core, at(state), at({}), f2);
const close = (a, b) => a.forEach((v, i) => assert.ok(Math.abs(v - b[i]) < 1e-9, `${a} ${b}`));

test("the backward pass is the reference's, in every state", () => {
  for (const { unit, dx, inner, ...state } of cases) {
    const found = figure.answers(core, state);
    if (dx === null) {
      assert.deepEqual([found.unit, found.dx, found.inner], [null, null, null]);
      continue;
    }
    near(found.unit, unit);
    near(found.dx, dx);
    near(found.inner, inner);
  }
  assert.equal(cases.filter((c) => c.dx === null).length, 1);
});

test("without ε dx is at a right angle to x and divided when x is multiplied", () => {
  const [one, two] = [at({ weight: [1.5, -0.5] }), at({ weight: [1.5, -0.5], x: [1.6, 1.2] })];
  near(one.inner, 0);
  near(one.angle, 90);
  near(two.dx, core.times(0.5, one.dx));
  near(core.dot(one.radial, one.x), 0);
});

test("with ε the part of dx along x is ε / D³ times that of u, over the mean square", () => {
  const { size, taken, radial } = at({ eps: 0.3, weight: [0.7, 1.9] });
  near(radial, core.times(0.3 / size ** 3, taken));
});

test("at x = 0 the whole of u passes, times 1 / √ε", () => {
  const { u, dx } = at({ x: [0, 0], eps: 0.25, weight: [2, -0.5] });
  near(dx, core.times(2, u));
});

test("dy along x leaves no gradient, and keeps its length where its box allows", () => {
  const dy = core.alignedWith([-0.3, 0.4], [0.5, 0], 1.2);
  close(dy, [-0.3, 0.4]);
  close(core.alignedWith([1, 0], [1.2, 1.2], 1.2), [1.2, 0]);
  close(at({ x: [-0.3, 0.4], dy }).dx, [0, 0]);
});

test("only a longer or shorter x at the same gradient is compared with the start", () => {
  near(figure.stretched(core, at({ x: [1.6, 1.2] }), START), 2);
  for (const state of [{}, { x: [-0.8, -0.6] }, { x: [0.6, 0.8] }, { x: [1.6, 1.2], dy: [0, 1] },
    { x: [1.6, 1.2], eps: 0.1 }, { x: [0, 0] }]) {
    assert.equal(figure.stretched(core, at(state), START), null);
  }
});

test("the ε slider ends at 0 and at 1", () => {
  assert.deepEqual([-3.1, -3, 0].map(figure.epsOf), [0, 1e-3, 1]);
  near([0, 1e-3, 0.25, 1].map((e) => figure.epsOf(figure.positionOf(e))), [0, 1e-3, 0.25, 1]);
});

test("the finding says what the projector does", () => {
  assert.equal(said({}), "The part of u along x, 0.90 long, is taken away (dashed). What is left "
    + "is divided by D: dx is 0.99 long and at a right angle to x.");
  assert.match(said({ x: [1.6, 1.2] }), /^x has 2\.00 times its length .* 0\.50 times: 0\.49 inst/);
  assert.match(said({ dy: [0.4, 0.3] }), /^u points along x\. .* takes all of u away: dx\s=\s0\.$/);
  assert.match(said({ eps: 0.5 }), /dx points along x \(dotted\), 0\.45 long\. The angle is 57\.3°/);
  assert.match(said({ x: [0, 0] }), /^At x = 0 with ε = 0 RMSNorm divides 0 by 0/);
  assert.match(said({ x: [0, 0], eps: 0.25 }), /^At x = 0 no direction .* 1\/√ε = 2\.00\./);
  assert.match(said({ weight: [0, 0] }), /^No gradient comes in/);
  assert.match(said({ weight: [1.5, -0.5] }), /^The weight turns dy into u first\./);
});

test("keys move a tip, and a tip stays in its box", () => {
  const key = (k, shiftKey = false) => core.keyMove({ key: k, shiftKey }, [0.2, 0.1], [0.8, 0.6]);
  close(key("ArrowUp"), [0.2, 0.2]);
  close(key("ArrowLeft", true), [-0.8, 0.1]);
  assert.deepEqual([key("Home"), key("End"), key("a")], [[0.8, 0.6], [0, 0], null]);
  assert.deepEqual(core.held(core, [5, 0.72], 1.6), [1.6, 0.7]);
});

test("an arrow is a path from its foot to its tip; no arrow has no path", () => {
  assert.match(core.arrow([0, 0], [30, 0]), /^M0\.00,0\.00L20\.00,0\.00M30\.00,0\.00L20\.00,4\.20L/);
  assert.equal(core.arrow([3, 4], [3, 4]), "");
  assert.equal(core.angle([0, 0], [1, 0]), null);
  close([core.angle([1, 0], [-2, 2])], [135]);
});
