import assert from "node:assert/strict";
import test from "node:test";
import { load, vectors } from "./load.mjs";

const [core, dialect] = await Promise.all(["core", "dialect"].map(load));
const { data, cases, rounded, kept } = vectors("conventions_atlas");
const { types, families } = data;
const number = (v) => ({ inf: Infinity, "-inf": -Infinity, nan: NaN })[v] ?? v;

test("numbers are rounded to each type as NumPy does", () => {
  for (const [name, type] of Object.entries(types)) {
    rounded.values.forEach((v, i) => {
      const here = dialect.rounded(v, type);
      const there = dialect.rounded(number(rounded[name][i]), type);
      assert.equal(here, there, `${v} in ${name}`);
      if (name === "float32") assert.equal(here, Math.fround(v));
    });
  }
});

test("every family returns the numbers of conventions.apply, bit for bit", () => {
  let compared = 0;
  for (const { name, dtype, weight, scale, type, y } of cases) {
    const state = { first: name, second: "torch", dtype, weight, scale, feature: 1 };
    const [found] = dialect.answers(data, state).both;
    assert.equal(found.type, type);
    y.forEach((v, i) => {
      const expected = dialect.rounded(number(v), types[type]);
      assert.equal(found.y[i] + 0, expected + 0, `${name} ${dtype} ${weight} ${scale} [${i}]`);
      compared += 1;
    });
  }
  assert.equal(compared, Object.keys(families).length * 5 * 7 * kept);
});

const state = (first, second, dtype, scale, weight = "same") =>
  ({ first, second, dtype, weight, scale, feature: 1 });
const last = (...args) => dialect.answers(data, state(...args));
const said = (...args) => dialect.finding(core, last(...args)).replaceAll("\u00a0", " ");

test("positions count the numbers of a type", () => {
  const { float16: half, bfloat16 } = types;
  assert.deepEqual([0, 2 ** -24, 2 ** -14, 1, -1, 65504].map((v) => dialect.position(v, half)),
    [0, 1, 1024, 15360, -15360, 31743]); // float16's bits are these numbers
  assert.equal(dialect.apart(1, 1 + 2 ** -7, bfloat16), 1);
  assert.equal(dialect.apart(-(2 ** -24), 2 ** -24, half), 2);
  assert.equal(dialect.apart(0, -0, half), 0);
  assert.deepEqual([[NaN, NaN], [NaN, 1], [Infinity, Infinity], [Infinity, 65504]]
    .map(([a, b]) => dialect.apart(a, b, half)), [0, Infinity, 0, Infinity]);
});

test("the slider has six steps to a power of ten", () => {
  assert.deepEqual([-48, -1, 0, 3, 15, 24].map(dialect.scaleAt), [1e-8, 0.7, 1, 3, 300, 1e4]);
  for (let k = -48; k <= 24; k += 1) assert.equal(dialect.stepAt(dialect.scaleAt(k)), k);
  assert.deepEqual([310, 1e-9, 1e9, -1].map(dialect.stepAt).slice(0, 3), [15, -48, 24]);
});

test("every output is counted once, and lines are paired by what they do", () => {
  for (const args of [["llama", "torch", "bfloat16", 3], ["paper_torch", "gemma", "float16", 1e-8],
    ["t5", "keras", "float16", 3, "float32"]]) {
    const { counts, ulps, differ } = last(...args);
    assert.equal(counts.reduce((a, b) => a + b), 256);
    assert.equal(differ, ulps.filter((u) => u > 0).length);
  }
  const { code } = last("llama", "keras", "bfloat16", 3, "float32");
  const marked = code.filter(({ differs }) => differs);
  assert.deepEqual(marked.map(({ role, lines }) => [role, ...lines]), [
    ["cast", undefined, "w → bfloat16"],
    ["xhat", "x̂ = x · (1/D) → bfloat16", "x̂ = x · (1/D)"],
    ["return", "return x̂ · w → float32", "return x̂ · w → bfloat16"],
  ]);
});

test("a rounding more makes a quarter of the outputs differ", () => {
  assert.equal(said("llama", "torch", "bfloat16", 3), "24% of the outputs differ, none by more "
    + "than one ulp: LLaMA rounds x̂ to bfloat16 before it multiplies.");
  assert.match(said("llama", "torch", "bfloat16", 1), /^\d% of .* D is close to a power of two/);
  assert.match(said("llama", "torch", "bfloat16", 0.01), /, and ε adds to it: 10⁻⁶ beside 1\.19 ×/);
  assert.match(said("llama", "torch", "bfloat16", 3, "float32"),
    /^LLaMA returns float32, torch bfloat16\. In bfloat16: \d\d% of the outputs differ, none by/);
  assert.match(said("keras", "olmo2", "float16", 3, "float32"),
    /: Keras rounds w to float16 first\.$/);
});

test("with a small input ε decides", () => {
  assert.equal(said("paper_torch", "gemma", "float32", 1e-4), "All 256 outputs differ, and ε "
    + "decides: Gemma’s are 10.0 times smaller, for its ε of 10⁻⁶ stands beside a mean square of "
    + "10⁻⁸.");
  assert.match(said("paper_torch", "x_transformers", "float32", 1e-8),
    /2019 PyTorch’s are 2\.00 times smaller, for its ε of 10⁻⁸ stands beside an RMS of 10⁻⁸\.$/);
  assert.match(said("llama", "torch", "float32", 1),
    /^All 256 outputs differ, by up to \d ulps: ε is 10⁻⁶ for LLaMA and 1\.19 × 10⁻⁷ for torch/);
});

test("what overflows, or divides by 0, is named", () => {
  assert.equal(said("paper_tensorflow", "torch", "float16", 300),
    "2019 TensorFlow returns 0 everywhere: x² overflows to infinity in float16, and x / ∞ is 0.");
  assert.match(said("gemma_flax", "paper_tensorflow", "float16", 1e4), /^Each of the two returns/);
  assert.equal(said("paper_torch", "torch", "float16", 1e-8),
    "2019 PyTorch divides by 0: in float16 x is 0, and so is ε.");
  assert.match(said("paper_torch", "torch", "float16", 2e-8), /: in float16 the RMS is 0, and so/);
  assert.match(said("llama", "torch", "float16", 1e-8), /^In float16 \d+ of the 256 inputs are 0/);
});

test("where nothing differs it says why", () => {
  assert.equal(said("t5", "llama", "bfloat16", 3), "No line differs, and none of the 256 outputs.");
  assert.match(said("gemma", "olmo2", "float32", 3), /: Gemma adds 1 to its weight, and its/);
  assert.match(said("torch", "olmo2", "bfloat16", 300), /The marked line does, but at this size/);
});
