import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const sampling = await load("sampling");
const { sizes, shares, counts, lgamma, laws, rows } = vectors("partial_estimate");
const answers = (state) => sampling.answers(sampling.ratios(state.features, state.n), state);
const said = (features, n, p) => sampling.finding(answers({ features, n, p }));

test("the sliders stop where the package says", () => {
  assert.deepEqual(sampling.SIZES, sizes);
  assert.deepEqual(sampling.PERCENTS.map(sampling.shareOf), shares);
});

test("k by both rules is that of reference.partial_size, at every n and p", () => {
  for (const { n, ceil, floor } of counts) {
    assert.deepEqual(shares.map((p) => sampling.partialSize(n, p, "ceil")), ceil);
    assert.deepEqual(shares.map((p) => sampling.partialSize(n, p, "floor")), floor);
  }
  assert.equal(sampling.partialSize(100, 0.29, "ceil"), 29);
  assert.equal(sampling.partialSize(100, 0.29, "floor"), 28);
});

test("log Γ is math.lgamma's", () => {
  for (const [x, value] of lgamma) near(sampling.lgamma(x), value);
});

test("the law for independent normal features", () => {
  // A difference of log Γ up to 1e4 keeps 1e-11; under the root 1 − mean² enlarges it.
  const close = (a, b, part) => assert.ok(Math.abs(a / b - 1) <= part, `${a} is not ${b}`);
  for (const { n, k, mean, sd, density } of laws) {
    const found = sampling.derived(n, k);
    close(found.mean, mean, 2e-11);
    close(found.sd, sd, 4e-11 / sd ** 2);
    close(found.rule ** 2, 1 / (2 * k), 1e-14);
    for (const [r, value] of density) {
      if (value > 1e-300) close(sampling.density(n, k, r), value, 1e-9);
    }
  }
  assert.deepEqual(sampling.derived(8, 8), { mean: 1, sd: 0, rule: 0.25 });
});

test("the density is one: its integral is 1, its mean the derived one", () => {
  for (const [n, k] of [[8, 2], [100, 29], [1024, 64]]) {
    const step = 1e-4;
    let [area, moment] = [0, 0];
    for (let r = step / 2; r * r * k < n; r += step) {
      const part = sampling.density(n, k, r) * step;
      area += part;
      moment += part * r;
    }
    // the midpoint rule: 1e-8 of the second derivative, and the end of the range
    assert.ok(Math.abs(area - 1) < 1e-6 && Math.abs(moment - sampling.derived(n, k).mean) < 1e-6);
  }
  assert.equal(sampling.density(8, 2, 2), 0, "no ratio is above √(n/k)");
});

test("the rows are NumPy's: their ratios, mean and spread by reference.rms", () => {
  for (const { features, n, p, count, first, mean, sd } of rows) {
    const { values, seen } = answers({ features, n, p });
    assert.equal(values.length, count);
    near([...values.slice(0, 3)], first);
    near([seen.mean, seen.sd], [mean, sd]);
  }
  assert.equal(new Set(rows.map((c) => c.features)).size, 5);
});

test("a histogram is a density of what lies in it", () => {
  assert.deepEqual(sampling.histogram([0.1, 0.3, 0.3, 9], 0.25, 4), [1, 2, 0, 0]);
});

test("nine outputs of ten lie between the ends", () => {
  const { low, high } = sampling.outputs(Array.from({ length: 101 }, (_, i) => 1 / (i + 1)));
  near([low, high], [6, 96]);
});

test("the range of the outputs in words", () => {
  const words = (low, high) => sampling.range({ low, high });
  assert.equal(words(0.873, 1.15), "lie between 13% too small and 15% too large");
  assert.equal(words(0.3, 21.9), "lie between 3.3 times too small and 22 times too large");
  assert.equal(words(1.27, 145), "are between 27% and 145 times too large");
  assert.equal(words(0.426, 0.454), "are between 2.2 and 2.3 times too small");
  assert.equal(words(0.4401, 0.4402), "are 2.3 times too small");
});

test("the finding says the consequence, and why", () => {
  assert.match(said("normal", 1024, 0.0625),
    /^With 64 features of 1024, nine .* between 1\d% too small and 1\d% too large\. Four times/);
  assert.match(said("normal", 1024, 0.5), /The error falls to 0 as p goes to 100%\.$/);
  assert.match(said("normal", 100, 0.05), /So few are hardly a sample\.$/);
  assert.match(said("normal", 8, 0.0625),
    /^int\(8 × 0\.0625\) is 0: .* by zero\. The paper’s ⌈np⌉ is 1\. With 1 feature of 8/);
  assert.match(said("normal", 100, 0.29),
    /^In float64 100 × 0\.29 is just below 29: the 2019 code takes 28\. With 29 features/);
  assert.match(said("largest", 1024, 0.0625), /too small\. The first 64 are no sample: the largest/);
  assert.match(said("smallest", 1024, 0.0625), /too large\. The first 64 are no sample: the small/);
  assert.match(said("outlier", 1024, 0.0625), /outlier is feature 342: the first 64 miss it\.$/);
  assert.match(said("outlier", 1024, 0.4), /feature 342: the first 410 hold it, and it counts/);
  assert.match(said("heavy", 1024, 0.0625), /A few large features carry the row/);
  assert.match(said("smallest", 50, 0.02), /The first one is no sample/);
  assert.equal(said("heavy", 8, 1), "All 8 features: the estimate is the RMS itself.");
});

test("what is said of rounding is only said where a float is to blame", () => {
  for (const n of [49, ...sizes]) {
    for (const p of shares) {
      const exact = Math.round(p * 10000) * n;
      const isTrap = exact % 10000 === 0
        && sampling.partialSize(n, p, "floor") !== sampling.partialSize(n, p, "ceil");
      const state = { n, p, features: "normal", k: exact / 10000, out: { low: 1.1, high: 1.2 } };
      const floor = sampling.partialSize(n, p, "floor");
      const text = sampling.finding({ ...state, floor });
      assert.equal(text.startsWith("In float64"), isTrap && floor > 0, `${n} ${p}: ${text}`);
    }
  }
});
