import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [core, epsilons] = await Promise.all(["core", "epsilons"].map(load));
const { files, cases } = vectors("epsilons");
const said = (exponent) => epsilons.finding(core, files, epsilons.answers(files, exponent));

test("the answers are those of the reference, for every file and size", () => {
  for (const { exponent, outputs } of cases) {
    const { found } = epsilons.answers(files, exponent);
    found.forEach((value, i) => near(value / outputs[i], 1));
  }
  assert.equal(files.length, 4);
});

test("an input of 10⁻⁵ has the four answers of the chapter", () => {
  const answer = Object.fromEntries(epsilons.answers(files, -5).found
    .map((value, i) => [files[i].name, core.number(value)]));
  assert.deepEqual(answer,
    { PyTorch: "0.999", TensorFlow: "0.0995", Lasagne: "0.0100", Theano: "0.00316" });
});

test("at the knee the output is 1/√2 with ε inside the root, 1/2 outside", () => {
  for (const file of files) {
    near(epsilons.output(file, epsilons.knee(file)), file.outside ? 1 / 2 : Math.SQRT1_2);
  }
});

test("sizes are written as powers of ten where they are small or large", () => {
  assert.deepEqual([-8, -4.5, -1.5, -1, 0, 0.7, 1, 1.9, 2].map((e) => epsilons.inputSize(core, e)),
    ["10⁻⁸", "3.2\u00a0×\u00a010⁻⁵", "0.0316", "0.1", "1", "5.01", "10", "79.4", "10²"]);
});

test("the finding says who still normalises, and how far apart the answers are", () => {
  assert.equal(said(-5), "An input of size 10⁻⁵: PyTorch still normalises it. "
    + "The answers are a factor of 316 apart.");
  assert.match(said(-3.3), /: PyTorch and TensorFlow still normalise it\./);
  assert.match(said(-2.6), /: PyTorch, TensorFlow and Lasagne still normalise it\./);
  assert.match(said(-2), /: all four give nearly 1\. The answers are up to 5% apart\./);
  assert.match(said(-8), /: no file normalises it any more\./);
  assert.equal(said(0), "An input of size 1: all four files give 1.00.");
});

test("four files that agree have one name", () => {
  const name = (found) => epsilons.named(core, files, found);
  assert.deepEqual(name([0.9999, 1, 1, 0.9996]), ["all four 1.00", "", "", ""]);
  assert.deepEqual(name([1, 0.5, 0.1, 0.01]),
    ["PyTorch 1.00", "TensorFlow 0.500", "Lasagne 0.100", "Theano 0.0100"]);
});

test("names that would overlap are moved down, in order", () => {
  assert.deepEqual(epsilons.stacked([10, 200, 12, 11], 17), [10, 200, 44, 27]);
  assert.deepEqual(epsilons.stacked([50, 10], 17), [50, 10]);
});

test("the names lie inside the picture and apart, at every width and size", () => {
  const texts = files.map((file) => `${file.name} 1.0 × 10⁻⁴`);
  for (const right of [276, 346, 708]) {
    const scale = (e) => 40 + ((e + 8) / 10) * (right - 40);
    const box = { right, x: scale, y: (v) => 54 - 45 * Math.log10(v), clear: () => 150 };
    for (let exponent = -8; exponent <= 2; exponent += 0.5) {
      const places = epsilons.labels(box, epsilons.answers(files, exponent), texts);
      for (const { x, anchor } of places) {
        assert.ok(anchor === "end" ? x >= 100 : x >= 40 && x <= right, `${x} of ${right}`);
      }
      const heights = places.map((p) => p.y).sort((a, b) => a - b);
      heights.slice(1).forEach((y, i) => assert.ok(y - heights[i] >= 16.99));
    }
  }
});
