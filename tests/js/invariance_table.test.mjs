import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [core, figure] = await Promise.all(["core", "invariance_table"].map(load));
const { cases, data } = vectors("invariance_table");
const { methods, changes, example } = data;
const change = (key) => changes.find((c) => c.key === key);
const method = (key) => methods.find((m) => m.key === key);
const rms = { method: "rms_norm", transformation: "weight_matrix_rescaling", amount: 1, eps: 0 };
const verdict = (state) => figure.measure(core, { ...rms, ...state }, example).verdict;

test("outputs and change are those of rmsnorm_edu.invariance", () => {
  assert.equal(cases.length, 5 * 2 * (4 * 3 + 2 * 2 + 2));
  for (const { after, max_change, ...state } of cases) {
    const found = figure.measure(core, state, example);
    near(found.after, after);
    near(found.maxChange, max_change);
  }
});

// Zhang & Sennrich 2019, Table 1, and the rotation; columns as `methods`.
const TABLE = {
  weight_matrix_rescaling: "✓✓✓✓✓", weight_matrix_recentering: "✗✗✓✗✗",
  weight_vector_rescaling: "✓✓✗✗✗", dataset_rescaling: "✓✗✓✓✓", dataset_recentering: "✓✗✗✗✗",
  single_case_rescaling: "✗✗✓✓✓", rotation: "✗✗✗✓✗",
};
const marks = (state) => Object.fromEntries(changes.map((c) => [c.key, methods.map((m) =>
  figure.mark(core, { method: m.key, transformation: c.key, ...state }, { ...c, example })[0])
  .join("")]));
const all = changes.flatMap((c) => methods.map((m) => `${m.key}/${c.key}`));

test("a verified table is the paper's, a fresh one says nothing", () => {
  assert.deepEqual(marks({ eps: 0, verified: all }), TABLE);
  assert.ok(Object.values(marks({ eps: 0, verified: [] })).every((row) => row === "?????"));
});

test("ε breaks the scales, not the shifts, not the rotation, not WeightNorm", () => {
  const broken = marks({ eps: 0.1, verified: all });
  for (const [key, row] of Object.entries(TABLE)) {
    const isScale = change(key).start === 1;
    const expected = [...row].map((sign, j) =>
      (isScale && sign === "✓" && methods[j].key !== "weight_norm" ? "≈" : sign)).join("");
    assert.equal(broken[key], expected, key);
  }
});

test("a negative scale turns over whatever a positive one leaves", () => {
  for (const [key, row] of Object.entries(TABLE).filter(([k]) => change(k).start === 1)) {
    [...row].forEach((sign, j) => {
      const now = verdict({ method: methods[j].key, transformation: key, amount: -2 });
      assert.equal(now, sign === "✓" ? "flips" : "moves", `${methods[j].key} ${key}`);
    });
  }
  assert.equal(verdict({ amount: 0 }), "nothing", "0 / 0");
  assert.equal(verdict({ amount: 1 }), "stays");
});

test("a cell counts as seen once the hand has gone far enough, with ε = 0", () => {
  const seen = (state, key = rms.transformation) =>
    figure.seen({ ...rms, transformation: key, ...state }, change(key));
  assert.equal(seen({ amount: 1.1 }), null);
  assert.equal(seen({ amount: 2 }), "rms_norm/weight_matrix_rescaling");
  assert.equal(seen({ amount: -1 }), "rms_norm/weight_matrix_rescaling/negative");
  assert.equal(seen({ amount: 0 }), null);
  assert.equal(seen({ amount: 2, eps: 0.1 }), null);
  assert.equal(seen({ amount: -2 }, "dataset_recentering"), "rms_norm/dataset_recentering");
  assert.equal(seen({ amount: -90 }, "rotation"), "rms_norm/rotation");
});

test("a cell says that it flips only after a negative scale was tried", () => {
  const at = (verified) =>
    figure.mark(core, { ...rms, verified }, { ...change(rms.transformation), example })[0];
  const name = "rms_norm/weight_matrix_rescaling";
  assert.deepEqual([at([name]), at([`${name}/negative`]), at([name, `${name}/negative`])],
    ["✓", "±", "✓±"]);
});

test("the finding is a sentence, and judges the guess", () => {
  const say = (state) => figure.finding({
    method: method("rms_norm"), change: change("rotation"), eps: 0, maxChange: 0.5,
    verdict: "moves", ideal: "moves", law: data.laws.rms_norm.rotation, ...state,
  });
  assert.equal(say({ isStart: true }), "Guess, then drag the slider.");
  assert.match(say({ isStart: true, method: method("partial_rms_norm") }),
    /^pRMSNorm is partial RMSNorm: it takes the RMS of the first 3 features only\. Guess/);
  assert.equal(say({}), "The outputs move.");
  assert.equal(say({ verdict: "stays", isSeen: true, holds: true }),
    `The outputs stay; what is left is rounding. ${data.laws.rms_norm.rotation.says}`);
  assert.equal(say({ verdict: "stays", isSeen: true, holds: false }),
    "The outputs stay; what is left is rounding.", "no law for an accident, as Q = −1");
  assert.match(say({ guess: "move" }), /^You were right\. The outputs move/);
  assert.match(say({ guess: "stay" }), /^Not so\. The outputs move/);
  assert.match(say({ verdict: "stays", guess: "stay" }), /^You were right\. The outputs stay/);
  assert.match(say({ verdict: "flips", guess: "stay" }), /^Below 0 they turn over/);
  assert.match(say({ eps: 0.1, ideal: "stays" }), /^ε = 0\.1 is not scaled, so it does not cancel\. The outputs move/);
  assert.match(say({ verdict: "nothing" }), /0 \/ 0/);
});
