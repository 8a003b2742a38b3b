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

test("the finding says who still normalises, and what the others make of it", () => {
  assert.equal(said(-5), "PyTorch still normalises this input. With the same weights Theano’s "
    + "answer is 316 times smaller.");
  assert.match(said(-3.3), /^PyTorch and TensorFlow still normalise this input\./);
  assert.match(said(-2.6), /^PyTorch, TensorFlow and Lasagne still normalise .* 38% smaller\.$/);
  assert.equal(said(-2), "All four still normalise it, up to 5% apart.");
  assert.equal(said(0), "ε is too small to be seen: all four files agree.");
});

test("where no file normalises, PyTorch still gives half or more", () => {
  for (const exponent of [-8, -7.5, -7.1]) {
    const { found } = epsilons.answers(files, exponent);
    assert.ok(found[0] >= 0.5 && found[0] <= 0.9 && Math.max(...found.slice(1)) < 1e-3);
    assert.match(said(exponent), /^Only PyTorch, with ε outside the root, still gives half/);
  }
  assert.match(said(-7), /^PyTorch still normalises/);
});
