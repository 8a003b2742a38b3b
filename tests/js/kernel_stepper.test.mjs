import assert from "node:assert/strict";
import test from "node:test";
import { load, vectors } from "./load.mjs";

const [helpers, steps] = await Promise.all(["core", "kernel_steps"].map(load));
const figure = await load("kernel_stepper");
const core = { ...helpers, ...steps };
const { scenes, counts, after } = vectors("kernel_stepper");
const [scene] = scenes;
const all = (program) => core.moments(scene, program);
const stepsOf = (program) => scene.programs[program].steps.map((_, i) =>
  [i, core.unpack(scene, program, i)]);
const last = scene.programs.length - 1;
const end = scene.programs[last].steps.length - 1;
const said = (program, is) => {
  const found = all(program).find(([i, fold]) => is(core.unpack(scene, program, i), fold));
  return core.finding(scene, program, found);
};

test("after the last step memory is as the launch left it", () => {
  core.memory(scene, last, end).forEach(({ name, values }) => {
    assert.equal(values.length, after[name].length);
    values.forEach((value, i) => assert.ok(
      Math.abs(value - after[name][i]) <= 5e-4 * Math.abs(after[name][i]), `${name} ${i}`));
  });
});

test("the bytes so far are at the end those that the recorder has counted", () => {
  core.memory(scene, last, end).forEach(({ name, read, written }) => {
    assert.deepEqual([read, written], [counts[name].loaded, counts[name].stored], name);
  });
});

test("memory is empty before, and filled by a program that has stored", () => {
  const y = (program, index) => core.memory(scene, program, index)
    .find(({ name }) => name === "y").values.map((v) => v !== null);
  const filled = (n) => Array.from({ length: 18 }, (_, i) => i < n);
  assert.deepEqual(y(0, 0), filled(0));
  assert.deepEqual(y(1, 0), filled(6));
  assert.deepEqual(y(last, end), filled(18));
});

test("a load lights its cells, hatches where masked lanes point, and leaves a trace", () => {
  const [[first, one], [second, two]] = stepsOf(1).filter(([, { kind }]) => kind === "load");
  assert.deepEqual([one.offsets, one.mask], [[6, 7, 8, 9], Array(4).fill(true)]);
  assert.deepEqual([two.offsets, two.mask], [[10, 11, 12, 13], [true, true, false, false]]);
  const states = (i) => core.memory(scene, 1, i)[0].states;
  assert.deepEqual(states(first).slice(6, 10), Array(4).fill("load"));
  assert.deepEqual(states(second).slice(4, 15), ["", "", "was", "was", "was", "was", "load", "load",
    "masked", "masked", ""]);
});

test("offsets that do not follow each other are kept one by one", () => {
  const [, tile] = stepsOf(0).find(([, { name }]) => name === "tile");
  assert.deepEqual(tile.shape, [4, 8]);
  assert.deepEqual(tile.offsets.slice(0, 10), [0, 1, 2, 3, 4, 5, 6, 7, 6, 7]);
  assert.equal(tile.mask.filter(Boolean).length, 18);
});

test("registers fill in the order of the program", () => {
  const names = core.registers(scene, 0, 0).map(({ name }) => name);
  assert.deepEqual(names, ["program", "squares", "columns", "inside", "x", "size", "row", "column",
    "every", "tile", "down", "across"]);
  const [[load]] = stepsOf(0).filter(([, { kind }]) => kind === "load");
  const filled = core.registers(scene, 0, load).filter(({ values }) => values);
  assert.deepEqual(filled.map(({ name }) => name), names.slice(0, 5));
  assert.deepEqual(filled.filter(({ isNow }) => isNow).map(({ name }) => name), ["x"]);
});

test("a sum folds by halves, along its axis, to the recorded numbers", () => {
  const reductions = stepsOf(0).filter(([, { kind }]) => kind === "reduce").map(([, s]) => s);
  const shapes = reductions.map((s) => core.folded(s).map((g) => [g.length, g[0].length]));
  assert.deepEqual(shapes, [
    [[1, 4], [1, 2], [1, 1]], [[4, 8], [2, 8], [1, 8]], [[4, 8], [4, 4], [4, 2], [4, 1]],
  ]);
  reductions.forEach((s) => {
    const levels = core.folded(s);
    const total = (grid) => grid.flat().reduce((a, b) => a + b, 0);
    levels.forEach((grid) => assert.ok(Math.abs(total(grid) - total(levels[0])) < 5e-3));
    assert.deepEqual(levels.at(-1).flat(), s.values);
  });
  const folds = all(0).filter(([i]) => core.unpack(scene, 0, i).kind === "reduce");
  assert.deepEqual(folds.map(([, fold]) => fold), [1, 2, 1, 2, 1, 2, 3]);
});

test("the finding says who reads what, where masked lanes point, who has read it before", () => {
  const masked = ({ kind, mask }) => kind === "load" && mask.includes(false);
  assert.equal(said(1, masked), "2 lanes read offsets 10–11 of x: 8 bytes. 2 lanes are masked and "
    + "get 0: they point at offsets 12–13, which belong to another row. An earlier program has read "
    + "them too: on a GPU a cache may answer.");
  assert.match(said(2, masked), /point at offsets 18–19, and x ends at 17\./);
  const again = stepsOf(0).filter(([, { kind, name }]) => kind === "load" && name === "x")[2][0];
  assert.match(core.finding(scene, 0, [again, 0]),
    /^4 lanes read offsets 0–3 of x: 16 bytes\. This program has read them before/);
  assert.equal(said(0, ({ kind }) => kind === "store"),
    "4 lanes write offsets 0–3 of y: 16 bytes.");
});

test("the finding says what begins, what a mask is for, what a fold does", () => {
  assert.equal(said(2, ({ kind }) => kind === "program"), "Program 2 of 3 begins. All run the same "
    + "lines; only this number tells one from another.");
  assert.match(said(0, ({ kind, values }) => kind === "mask" && values.includes(0)),
    /^2 of 4 lanes have a number to work on\. The other 2 will be masked\.$/);
  assert.match(said(0, ({ kind }, fold) => kind === "reduce" && fold === 1),
    /^Fold 1 of 2: .* 4 numbers become 2\.$/);
  assert.match(said(0, ({ kind }, fold) => kind === "reduce" && fold === 2),
    /^Fold 2 of 2: sum\(squares\) = 2\.21\. 4 lanes need 2 folds, a million need 20\./);
  assert.match(said(0, ({ name }, fold) => name === "across" && fold === 1), /in each of 4 sums/);
});

test("a step is written as the equation that it is", () => {
  const texts = stepsOf(0).map(([, s]) => core.formula(s, scene.arrays));
  assert.ok(texts.includes("x = load(x_ptr + program × d + columns)"));
  assert.ok(texts.includes("squares = squares + (x × x)"));
  assert.ok(texts.includes("store(y, x ÷ size)"));
});

test("Next and Back pass from program to program, and stop at the ends", () => {
  const at = (program, moment) => ({ scene, program, moment, all: all(program) });
  assert.deepEqual(figure.beside(core, at(0, all(0).length - 1), 1), { program: 1, moment: 0 });
  assert.deepEqual(figure.beside(core, at(1, 0), -1), { program: 0, moment: all(0).length - 1 });
  assert.deepEqual(figure.beside(core, at(0, 0), -1), { program: 0, moment: 0 });
  const final = all(last).length - 1;
  assert.deepEqual(figure.beside(core, at(last, final), 1), { program: last, moment: final });
});

test("what a link holds is held to what was recorded", () => {
  const state = (now) => figure.read(core, { get: (key) => ({ scenes, ...now })[key] });
  const { at, program, moment } = state({ scene: 9, program: 1.4, moment: 1e6 });
  assert.deepEqual([at, program, moment], [0, 1, all(1).length - 1]);
  assert.equal(state({ scene: 0, program: 1, moment: 0 }).moment, 0);
});

test("a program opens where its number tells it what to load, and lanes are masked", () => {
  const open = (program) => figure.opening(core, scene, program, all(program));
  scene.programs.forEach((_, program) => {
    const { kind, array, mask } = core.unpack(scene, program, all(program)[open(program)][0]);
    assert.equal(kind, "load");
    assert.ok(scene.arrays[array].shape[0] > 1 && mask.includes(false));
    const model = { scenes, scene: 0, program, moment: figure.OPENS };
    assert.equal(figure.read(core, { get: (key) => model[key] }).moment, open(program));
  });
  const load = all(0).findIndex(([i]) => core.unpack(scene, 0, i).kind === "load");
  assert.ok(open(0) > load, "the first load of the loop has all its lanes");
  assert.equal(figure.opening(core, scene, 0, all(0).slice(0, load + 1)), load);
  assert.equal(figure.opening(core, scene, 0, all(0).slice(0, load)), 0);
});

test("in little room the registers written last stay, and the array touched last", () => {
  const near = (index) => core.registers(scene, 0, index).filter(({ isNear }) => isNear)
    .map(({ name }) => name);
  const steps = stepsOf(0);
  assert.deepEqual(near(0), ["program", "squares", "columns", "inside", "x", "size"]);
  assert.deepEqual(near(steps.length - 1), ["row", "column", "every", "tile", "down", "across"]);
  steps.forEach(([i, { name }]) => {
    assert.equal(near(i).length, 6);
    assert.ok(!name || near(i).includes(name), name);
  });
  const touched = (index) => scene.arrays[core.touched(scene, 0, index)].name;
  steps.forEach(([i, { array }]) => {
    if (array !== null) assert.equal(touched(i), scene.arrays[array].name);
  });
  assert.equal(touched(0), "x", "the first that it will touch");
});

test("the buttons lead to masked lanes beyond the end, a fold, bytes read again", () => {
  const [past, fold, again] = figure.sights(core, scene);
  const step = ([, program, moment]) => core.unpack(scene, program, all(program)[moment][0]);
  assert.equal(step(past).kind, "load");
  assert.ok(step(past).offsets.some((o, i) => !step(past).mask[i] && o > 17));
  assert.equal(step(fold).kind, "reduce");
  assert.equal(core.readBefore(scene, again[1], all(again[1])[again[2]][0]), "this");
});

test("runs of numbers are joined, single ones are not", () => {
  assert.equal(core.runs([0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
});

test("numbers are short, words and empty cells stay", () => {
  const shown = [0.5, -1.2, 12, 0, -0.00796, 0.00028, 3e38, "nan", null];
  assert.deepEqual(shown.map((v) => core.show(v)),
    ["0.5", "−1.2", "12", "0", "−0.008", "3e−4", "3e38", "nan", ""]);
});
