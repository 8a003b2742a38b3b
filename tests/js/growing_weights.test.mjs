import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const modules = await Promise.all(["core", "plane", "growing_weights"].map(load));
const core = Object.assign({}, ...modules.slice(0, 2));
const figure = modules[2];
const { angles, steps, cases } = vectors("growing_weights");
const at = (state) => figure.answers(core, { rate: 0.3, decay: 0, step: 1, ...state }, angles);
const said = (state) => figure.finding(core, at(state), at({}));
const STATES = [{ rate: 0.02 }, {}, { rate: 3 }, { decay: 0.1 }, { rate: 3.1, decay: 0.1 }];

test("the weights are where the reference's gradients take them", () => {
  for (const { w, ...state } of cases) near(steps.map((s) => at(state).w[s]), w);
  assert.equal(cases.length, 6);
});

test("every gradient is at a right angle to w, so the squares add up", () => {
  for (const state of STATES) {
    const { rate, decay, w, dw, squares } = at(state);
    dw.forEach((g, i) => {
      near(core.dot(g, w[i]), 0);
      const kept = (1 - rate * decay) ** 2 * squares[i];
      near((kept + rate ** 2 * core.dot(g, g)) / squares[i + 1], 1);
      assert.ok(decay > 0 || squares[i + 1] >= squares[i]);
    });
  }
});

test("no step turns w by more than its norm allows", () => {
  for (const state of STATES) {
    const { turns, limits } = at(state);
    turns.forEach((turn, i) => assert.ok(turn <= limits[i] + 1e-9 && turn >= 0));
    assert.ok(Math.max(...turns.map((turn, i) => turn / limits[i])) > 0.9, "the limit is close");
  }
});

test("the averages are those of the first and the last steps", () => {
  const { turns, squares, early, late, settled } = at({ decay: 0.1 });
  near(early, core.rms(turns.slice(0, 20)));
  near(late, core.rms(turns.slice(150)));
  near(settled, core.mean(squares.slice(151)));
  near(figure.balance({ rate: 0.5, decay: 0.01 }) * Math.PI / 180, 0.1);
});

test("the finding says what the buttons promise", () => {
  assert.equal(said({}), "No step makes w shorter: ‖w‖² goes from 1 to 7.64. The longer w is, the "
    + "less a step turns it: 12.9° in the first 20 steps, 3.1° in the last 50 (RMS).");
  assert.match(said({ rate: 3 }), /^The first step turns w by 80\.2°, at η = 0\.3 by 30\.0°\./);
  assert.match(said({ decay: 0.1 }), /settles near 1\.66\. .* √\(2ηλ\) = 14\.0°; the last 50 .*14\.1/);
  assert.match(said({ decay: 0.01 }), /At ηλ = 0\.003 the two need more than 200 steps/);
  assert.match(said({ rate: 0.03 }), /^No step makes w shorter: ‖w‖² goes from 1 to 1\.26\./);
});

test("the whole path fits in the picture", () => {
  for (const state of STATES) {
    const { squares } = at(state);
    assert.ok(figure.reachOf(squares) ** 2 >= Math.max(...squares));
  }
  assert.deepEqual([[1], [1, 2.3], [30]].map(figure.reachOf), [1.5, 2, 6]);
});

test("the decay slider ends at 0, the rate's at powers of ten", () => {
  near([0, 1e-3, 0.03, 0.1, 3].map((v) => figure.valueOf(figure.positionOf(v))),
    [0, 1e-3, 0.03, 0.1, 3]);
  assert.equal(figure.valueOf(-3.1), 0);
});
