import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [core, depth] = await Promise.all(["core", "depth"].map(load));
const { curves, cases } = vectors("depth");
const said = (state) => depth.finding(depth.answers(curves, state));

test("the laws give the sizes of the simulation at every gain", () => {
  for (const { norm, gain, layer, size } of cases) {
    near(depth.sizeAt(curves, norm, gain, layer) / size, 1);
    near(depth.line(curves, norm, gain)[layer - 1] / size, 1);
  }
  assert.deepEqual(new Set(cases.map((c) => c.norm)), new Set(["none", "rms", "layer"]));
});

test("the gain for a size at a layer gives that size, at every depth", () => {
  for (const layer of [1, 2, 50, 100]) {
    for (const size of [1e-9, 1, 4e7]) {
      const gain = depth.gainFor(curves, layer, size);
      near(depth.sizeAt(curves, "none", gain, layer) / size, 1);
    }
  }
});

test("the answers at a layer, and where float16 ends", () => {
  const up = depth.answers(curves, { gain: 1.5, layer: 50 });
  assert.equal(up.sizes.none, up.lines.none[49]);
  assert.ok(up.lines.none[up.gone - 1] > 65504 && up.lines.none[up.gone - 2] <= 65504);
  const down = depth.answers(curves, { gain: 0.6, layer: 100 });
  assert.ok(down.lines.none[down.gone - 1] <= 2 ** -25
    && down.lines.none[down.gone - 2] > 2 ** -25);
  assert.equal(depth.answers(curves, { gain: 1.5, layer: up.gone - 1 }).gone, 0);
  assert.equal(depth.answers(curves, { gain: 1, layer: 100 }).gone, 0);
});

test("the finding says what becomes of the signal", () => {
  assert.match(said({ gain: 1, layer: 50 }), /^Without a norm only gains from 0\.95 to 1\.04 keep/);
  assert.match(said({ gain: 0.75, layer: 50 }), /^Without a norm the signal fades: every layer/);
  assert.match(said({ gain: 1.2, layer: 50 }), /^Without a norm the signal grows: every layer/);
  assert.match(said({ gain: 0.7, layer: 50 }), /^float16 rounds the signal to 0 from layer \d\d/);
  assert.match(said({ gain: 1.5, layer: 50 }), /^float16 holds .*: from layer 28 on .* infinite\./);
  assert.match(said({ gain: 1.5, layer: 50 }), /With a norm every layer starts from size 1/);
});

test("a gain has two decimals, or three", () => {
  assert.deepEqual([0.75, 1.29, 0.994, 2].map(depth.shortGain), ["0.75", "1.29", "0.994", "2.00"]);
});
