import assert from "node:assert/strict";
import test from "node:test";
import { load, vectors } from "./load.mjs";

const detective = await load("mutant_detective");
const data = vectors("mutant_detective");
const start = { case: 0, fed: 0, seen: [], guesses: [] };
const answers = (state) => detective.answers(data, { ...start, ...state });
const input = (name) => data.inputs.findIndex((one) => one.name === name);
const suspect = (name) => data.suspects.findIndex((one) => one.name === name);

test("a cell is blank where it is right, and never longer than five signs", () => {
  const cells = [[0, ""], [null, "nan"], [-6.46, "−6.5"], [6.46, "6.5"], [-100, "−100"],
    [0.0004, "<0.1"], [-0.0004, "<0.1"], [1e6, ">999"], [-1e6, ">999"], [12.4, "12"]];
  cells.forEach(([percent, text]) => assert.equal(detective.shown(percent), text));
  for (const { maps } of data.cases) {
    for (const { y = [], dx = [], dweight = [] } of maps) {
      [...y, ...dx, ...dweight].flat().forEach((v) => assert.ok(detective.shown(v).length <= 5));
    }
  }
});

test("a larger error is stronger, of either sign", () => {
  assert.deepEqual([0, null, 100, -1e6].map(detective.tone), [0, 1, 1, 1]);
  assert.ok(detective.tone(0.001) < detective.tone(-1) && detective.tone(1e-9) > 0);
});

test("the finding of an input is the sentence of the package", () => {
  data.cases.forEach((_, i) => data.inputs.forEach((_, fed) => {
    const last = answers({ case: i, fed });
    assert.equal(detective.finding(data, last), data.sentences[data.suspects[i].says[fed]]);
    assert.equal(detective.worst(last, String) === null, /^Right, but/.test(last.told(i)));
  }));
});

test("a guess is answered by what it would have done here", () => {
  const padding = suspect("padding counted");
  const [next, n] = [suspect("next row overwritten"), suspect("n − 1")];
  const last = answers({ case: padding, guesses: [`${padding}/${next}`] });
  assert.match(detective.finding(data, last, next),
    /^No\. “next row overwritten” looks the same here\. “Seven features” would have told/);
  assert.match(detective.finding(data, last, n), /^No\. With “n − 1” you would read here: y is 6/);
  assert.match(detective.finding(data, last), /^Right, but for rounding/);
});

test("a solved case says what, where it was reported, and counts", () => {
  const n = suspect("n − 1");
  const state = { fed: input("Tiny rows"), seen: ["0/1", "0/4", "1/7"], guesses: ["0/3", "0/0"] };
  const last = answers(state);
  assert.equal(n, 0);
  assert.ok(last.isSolved && last.solved === 1 && last.guesses === 2);
  const said = detective.finding(data, last, 0);
  assert.ok(said.includes(data.suspects[0].what) && said.includes(data.suspects[0].reported));
  assert.match(said, /You needed 3 inputs and 2 guesses\.$/);
  assert.match(detective.finding(data, answers({ guesses: ["0/0"] }), 0), /1 input and one guess/);
});

test("a link that holds no such case shows the nearest", () => {
  const last = answers({ case: 99, fed: -3 });
  assert.deepEqual([last.case, last.fed], [data.cases.length - 1, 0]);
});

test("the largest error has its place and both values", () => {
  const last = answers({ fed: input("Normal rows") });
  const cell = detective.worst(last, String);
  assert.equal(cell.what, "y");
  assert.match(cell.place, /^[123], [1-8]$/);
  assert.ok(Math.abs(cell.got / cell.want - Math.sqrt(7 / 8)) < 0.01);
});
