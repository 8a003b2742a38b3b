import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const recurrence = await load("recurrence");
const { data, cases, shown } = vectors("cell");
const flat = (states, name) => states.flatMap((state) => [...state[name]]);
const names = (cell) => (cell === "gru" ? ["gates", "candidate", "h"]
  : ["gates", "candidate", "memory", "h", "c"]);

test("both cells compute what the 2019 code does, with gains, biases and every norm", () => {
  for (const { cell, kinds, sizes, x, p, found } of cases) {
    const inputs = recurrence.project(cell, p, Float64Array.from(x), sizes[3]);
    const states = recurrence.run(cell, p, inputs, { sizes, kinds });
    for (const name of names(cell)) near(flat(states, name), found[name]);
  }
  assert.equal(new Set(cases.map((c) => c.cell + c.kinds)).size, 8);
});

test("the figure's own cell has the quantiles and the shares of NumPy", () => {
  for (const { cell, kinds, gain, steps, shares, quantiles, h } of shown) {
    const own = recurrence.own(data, cell);
    const states = recurrence.run(cell, own.p, own.inputs, { sizes: data.sizes, kinds, gain });
    steps.forEach((step, i) => {
      for (const [name, end] of Object.entries(recurrence.ENDS)) {
        if (!quantiles[name]) continue;
        const found = recurrence.spread(states[step - 1][name], end);
        near(found.quantiles, quantiles[name][i]);
        assert.equal(found.share, shares[name][i]);
      }
      near(states[step - 1].h[0], h[i]);
    });
  }
});

test("the parts of the first unit make its next state", () => {
  const sigmoid = (z) => 1 / (1 + Math.exp(-z));
  for (const cell of ["gru", "lstm"]) {
    const own = recurrence.own(data, cell);
    const kinds = ["rms", "rms", "rms", "rms"];
    const states = recurrence.run(cell, own.p, own.inputs, { sizes: data.sizes, kinds, gain: 2 });
    for (const { unit, h, c, memory } of states) {
      if (cell === "gru") {
        const [r, u] = [sigmoid(unit.A + unit.Q), sigmoid(unit.Au + unit.Qu)];
        near(u * unit.before + (1 - u) * Math.tanh(r * unit.R + unit.E), h[0]);
      } else {
        const [i, f, o] = unit.z.map(sigmoid);
        near(f * unit.kept + i * Math.tanh(unit.z[3]), c[0]);
        near(o * Math.tanh(memory[0]), h[0]);
      }
    }
  }
});

const bands = recurrence.source(data);
const state = { cell: "gru", norm: "rms", places: [1, 1, 1, 1], gain: 4, step: 30 };
const answers = (changes) => recurrence.answers(bands, { ...state, ...changes });
const said = (changes) => recurrence.finding(answers(changes), data.loud);

test("a norm on both sides takes the gain and the loud input out", () => {
  const [one, four] = [answers({ gain: 1 }), answers({ gain: 4 })];
  // ε = 1e-5 stands beside a mean square of the recurrent part, which is above 0.01 at gain 1
  for (const step of [1, 13, 29]) {
    const [a, b] = [one, four].map((last) => last.found[step].gates.quantiles);
    a.forEach((q, i) => assert.ok(Math.abs(q - b[i]) < 5e-3));
  }
  assert.ok(four.share < 0.06 && four.bareShare > 0.2);
  assert.ok(answers({ step: 13 }).share < 0.06);
  assert.equal(four.bareShare, answers({ norm: "none" }).share);
});

test("the finding says what comes through", () => {
  assert.match(said({}), /^Step 30: 4% of the gates .* without a norm 27%\. Neither the loud/);
  assert.match(said({ norm: "none" }), /^Step 30: 27% .*; with RMSNorm everywhere 4%\. A sat/);
  assert.match(said({ places: [1, 1, 0, 0] }), /The loud input no longer .* γ still does\.$/);
  assert.match(said({ places: [0, 0, 1, 1], step: 13 }), /^Step 13, a loud one: .* still does\.$/);
  assert.match(said({ places: [0, 1, 0, 1] }), /No norm that is on acts on the gates’ own sum/);
  assert.match(said({ gain: 0.5 }), /there is nothing to protect them from\.$/);
  assert.match(said({ step: 1 }), /The first state is 0, and a norm leaves 0 as it is/);
  assert.match(said({ cell: "lstm", step: 13, places: [1, 1, 0, 0] }), /Neither the loud input/);
  assert.match(said({ cell: "lstm", places: [0, 1, 1, 0] }), /γ no longer comes through/);
});

test("a saturated gate passes less than a fifth of its gradient at one half", () => {
  const [z, end] = [recurrence.ENDS.gates, 1 / (1 + Math.exp(-recurrence.ENDS.gates))];
  near([end, Math.tanh(z / 2)], [0.95, 0.9]);
  assert.ok(end * (1 - end) < 0.25 / 5);
});

test("a tap switches one norm; the last one that goes leaves no norm", () => {
  const tap = (changes, place) => recurrence.toggled({ ...state, ...changes }, place);
  assert.deepEqual(tap({}, 2), { norm: "rms", places: [1, 1, 0, 1] });
  assert.deepEqual(tap({ norm: "layer", places: [0, 0, 1, 0] }, 2).norm, "none");
  assert.deepEqual(tap({ norm: "none" }, 3), { norm: "rms", places: [0, 0, 0, 1] });
  assert.deepEqual(tap({ cell: "lstm", places: [0, 1, 0, 1] }, 1).norm, "none");
  assert.deepEqual(recurrence.kindsOf({ ...state, cell: "lstm", norm: "layer",
    places: [1, 0, 1, 1] }), ["layer", "none", "layer"]);
});

test("the numbers of the equation are the cell's", () => {
  const gru = recurrence.partsOf(answers({}));
  near(gru.u * gru.before + gru.v * gru.c, gru.h);
  const lstm = recurrence.partsOf(answers({ cell: "lstm" }));
  near(lstm.f * lstm.kept + lstm.i * lstm.g, lstm.c);
  near(lstm.o * Math.tanh(lstm.m), lstm.h);
});
