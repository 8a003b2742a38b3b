import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [core, rounding] = await Promise.all(["core", "rounding"].map(load));
const { data, cases } = vectors("rounding_cloud");
const state = (dtype, convention, exponent, eps = "own") => ({ dtype, convention, eps, exponent });
const last = (...args) => rounding.answers(data, state(...args));
const said = (...args) => rounding.finding(core, data, last(...args));

test("the letters are the measured errors, to the step of the picture", () => {
  for (const one of cases) {
    const { rows } = rounding.answers(data, one);
    assert.equal(rows.length, one.errors.length);
    rows.forEach(({ v }, i) => {
      const error = one.errors[i];
      if (error === null) assert.equal(v, Infinity);
      else if (error < 4) assert.ok(Math.abs(v - error) < 0.047);
      else assert.ok(v / error > 0.74 && v / error < 1.3);
    });
  }
  assert.ok(cases.length > 100);
});

test("every point has its size", () => {
  const one = last("float16", "torch", 0);
  const found = rounding.points(data, one, one.cell);
  assert.equal(found.length, one.cell.rows.length);
  assert.deepEqual([found[0].k, found.at(-1).k], data.types.float16.k);
  assert.deepEqual(found.filter(({ k }) => k === 0), one.rows);
});

test("heights are linear up to 4 u, then logarithmic up to 100%", () => {
  const u = 2 ** -11;
  const at = (v) => rounding.height(v, u);
  near([at(0), at(1), at(2), at(4)], [0, 0.15, 0.3, 0.6]);
  near([at(2 ** 6.5), at(2 ** 11), at(2 ** 12)], [0.8, 1, 1]); // the middle of 2² and 2¹¹; clamped
});

test("the axis shows what the type holds, and something beyond", () => {
  const { float16, float32 } = data.types;
  assert.deepEqual(rounding.sizesOf(float16), [float16.k[0] - 20, float16.k[1] + 20]);
  assert.deepEqual(rounding.sizesOf(float32), rounding.SIZES);
});

test("the edges are where squares, or the norm, no longer fit", () => {
  const edges = (...args) => last(...args).edges;
  assert.deepEqual(edges("float16", "gemma_flax", 0), {
    low: { what: "x²", type: "float16", from: 2 ** -7 },
    high: { what: "x²", type: "float16", from: 256 },
  });
  assert.deepEqual(edges("float16", "paper_torch", 0), {
    low: { what: "the RMS", type: "float16", from: 2 ** -14 },
    high: { what: "‖x‖", type: "float16", from: 2 ** 14 },
  });
  assert.deepEqual(edges("float32", "torch", 0),
    { low: null, high: { what: "Σx²", type: "float32", from: 2 ** 62 } });
  assert.deepEqual(edges("float32", "torch", 0, "zero").low,
    { what: "x²", type: "float32", from: 2 ** -63 });
  assert.deepEqual(edges("float16", "torch", 0), { low: null, high: null });
});

test("the largest square is kept, loses digits, or is lost", () => {
  const kept = (...args) => rounding.keptSquare(core, data, last(...args));
  assert.equal(kept("float16", "gemma_flax", 8), "∞");
  assert.equal(kept("float16", "gemma_flax", 6), "4096");
  assert.equal(kept("float16", "torch", 8), "65536");
  assert.match(kept("float16", "gemma_flax", -8), /^1\.5\u00a0×\u00a010⁻⁵, few digits$/);
  assert.equal(kept("float32", "torch", -76), "0");
  assert.match(kept("float32", "torch", -74), /few digits$/);
});

test("the finding says what comes out, and why", () => {
  assert.equal(said("float16", "gemma_flax", 8),
    "Every output is 0: x² overflows to infinity in float16, and x\u00a0/\u00a0∞ is 0.");
  assert.match(said("float16", "paper_torch", 14), /^Every output is 0: ‖x‖ overflows .* float16/);
  assert.match(said("float32", "torch", 62), /^Every output is 0: Σx² overflows .* in float32/);
  assert.match(said("float32", "torch", 66), /^Every output is 0: x² overflows .* in float32/);
  assert.equal(said("float32", "torch", -76, "zero"), "The outputs are infinite or not a number: "
    + "the mean of x² is 0 in float32, ε is 0, and the norm divides by 0.");
  assert.match(said("float16", "paper_torch", -24), /the RMS is 0 .* so is ε in float16/);
  assert.match(said("float16", "gemma_flax", -8),
    /^Wrong by .*: below 0\.00781 x² has only few digits in float16\.$/);
  assert.match(said("float16", "gemma_flax", -24), /x² is 0 in float16, and ε has only few digits/);
  assert.match(said("float16", "torch", 20), /^float16 has .* largest is 65504\. .* infinite/);
  assert.match(said("float16", "torch", -40), /^float16 has .* 6\.0\u00a0×\u00a010⁻⁸\. .* zeros/);
});

test("inside the range it counts the outputs that are not the nearest number", () => {
  assert.match(said("float16", "torch", 0), /once, .* all but about one output in \d+ are the near/);
  assert.match(said("bfloat16", "torch", 0), /torch rounds to bfloat16 once, .* the nearest/);
  assert.match(said("bfloat16", "gemma_flax", 0),
    /^Below the bound, yet about \d\d% of the outputs are not .*; of torch’s, 0%\.$/);
  assert.match(said("float32", "torch", 0), /about \d\d% .* nearest float32 number\.$/);
});

test("errors are told in u, beyond the bound in percent", () => {
  const told = (...args) => rounding.inWords(core, last(...args));
  assert.match(told("float16", "torch", 0), /^0\.\d+ u$/);
  assert.equal(told("float16", "gemma_flax", 8), "100%");
  assert.equal(told("float32", "torch", -76, "zero"), "∞");
  assert.equal(told("float16", "torch", 20), "–");
});

test("no finding is without its reason, anywhere", () => {
  for (const dtype of Object.keys(data.types)) {
    for (const convention of Object.keys(data.conventions)) {
      for (const eps of ["own", "zero"]) {
        for (let k = rounding.SIZES[0]; k <= rounding.SIZES[1]; k += rounding.STEP) {
          assert.doesNotMatch(said(dtype, convention, k, eps), /undefined|NaN|false/);
        }
      }
    }
  }
});
