import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [core, hero] = await Promise.all(["core", "hero"].map(load));
const f2 = (v) => v.toFixed(2);
const start = { x: [1.6, -0.6, 0.9, 2], scale: 1, shift: 0 };
const said = (change) => {
  const state = { ...start, ...change };
  return hero.finding({ ...state, ...hero.answers(core, state) }, f2);
};

test("the norms, the size and the mean are those of the reference", () => {
  for (const { rms, layer, size, mean, eps, ...state } of vectors("hero")) {
    const found = hero.answers(core, state);
    assert.equal(hero.EPS, eps);
    near(found.now.rms, rms);
    near(found.now.layer, layer);
    near([found.size, found.mean], [size, mean]);
  }
});

test("a scale moves neither norm, a shift moves only RMSNorm, a minus turns both over", () => {
  assert.ok(hero.answers(core, { ...start, scale: 3 }).moved.rms < 1e-5);
  const { moved } = hero.answers(core, { ...start, shift: 2 });
  assert.ok(moved.rms > 0.5 && moved.layer < 1e-5);
  const { now, before } = hero.answers(core, { ...start, scale: -1 });
  near(now.rms, before.rms.map((v) => -v));
  near(now.layer, before.layer.map((v) => -v));
});

test("a drag is undone through scale and shift, to two decimals, within the axis", () => {
  assert.equal(hero.under(core, 5, { scale: 2, shift: 1 }), 2);
  assert.equal(hero.under(core, 1, { scale: 3, shift: 0 }), 0.33);
  assert.equal(hero.under(core, 5, { scale: 0.1, shift: 0 }), hero.LIMIT);
  assert.equal(hero.under(core, 5, { scale: 0, shift: 1 }), null);
});

test("every arrow key reaches the next tenth under every scale", () => {
  for (const scale of [-3, -0.7, 0.3, 1, 2.9, 3]) {
    let x = 0;
    for (let k = 1; k <= 10; k++) {
      const next = core.keyStep({ key: "ArrowUp" }, core.round(x * scale, 0.1), [-6, 6], 0.1);
      x = hero.under(core, next, { scale, shift: 0 });
    }
    near(core.round(x * scale, 0.1), 1);
  }
});

test("the finding is a sentence", () => {
  assert.match(said({}), /, RMSNorm leaves it in: their answers differ by up to \d\.\d\d\.$/);
  assert.equal(said({ x: [1, -1, 2, -2] }),
    "LayerNorm finds no mean to take away, and the two norms agree.");
  assert.equal(said({ scale: 3 }),
    "Scaled by 3.00: neither norm moves, because both divide the factor away again.");
  assert.match(said({ shift: 2 }),
    /^Shifted by 2.00: RMSNorm moves by up to .*, LayerNorm stays: it takes/);
  assert.match(said({ scale: -1 }), /both norms turn over and keep their size/);
  assert.match(said({ scale: 0, shift: 1 }), /all bars are equal/);
  assert.match(said({ scale: 0 }), /no size to divide by/);
});
