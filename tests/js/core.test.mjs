import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const [core, host] = await Promise.all(["core", "host"].map(load));

test("keys: arrows a step, Shift and Page ten, Home and End the ends, within the range", () => {
  const press = (key, shiftKey = false, from = 1) =>
    core.keyStep({ key, shiftKey }, from, [-6, 6], 0.1);
  assert.equal(press("ArrowUp"), 1.1);
  assert.equal(press("ArrowLeft"), 0.9);
  assert.equal(press("ArrowRight", true), 2);
  assert.equal(press("PageDown"), 0);
  assert.equal(press("PageDown", true), 0);
  assert.deepEqual([press("Home"), press("End")], [-6, 6]);
  assert.equal(press("ArrowUp", true, 5.5), 6);
  assert.equal(press("a"), null);
});

test("numbers: rounding leaves no dust and no −0, powers of ten are written as such", () => {
  assert.equal(core.round(0.1 + 0.2, 0.1), 0.3);
  assert.ok(Object.is(core.round(-0.01, 0.1), 0));
  assert.equal(core.clamp(7, [0, 5]), 5);
  assert.equal(core.power(5.66e-7), "5.7\u00a0×\u00a010⁻⁷", "it does not break");
  assert.equal(core.power(-6.4e8, 0), "−6\u00a0×\u00a010⁸");
  assert.equal(core.power(0), "0");
});

test("small digits of Unicode come in pieces of full ones, each at its level", () => {
  assert.deepEqual(core.pieces("1.2 × 10⁻¹⁸ of x₁₂"),
    [["1.2 × 10", 0], ["−18", 1], [" of x", 0], ["12", -1]]);
  assert.deepEqual(core.pieces(7), [["7", 0]]);
  assert.equal(core.markup("x₃ > 10⁻⁸"), "x<sub>3</sub> > 10<sup>−8</sup>");
  assert.deepEqual(core.pieces(""), [["", 0]]);
  assert.deepEqual([core.small(-10, 1), core.small(12, -1)], ["⁻¹⁰", "₁₂"]);
});

test("several changes in one turn are one update", async () => {
  const model = host.pageModel({ a: 1, b: 2 });
  let updates = 0;
  const stop = core.onChange(model, ["a", "b"], () => updates++);
  core.change(model, { a: 3, b: 4 });
  await null;
  assert.deepEqual([updates, model.get("a"), model.get("b")], [1, 3, 4]);
  stop();
  core.change(model, { a: 5 });
  await null;
  assert.equal(updates, 1);
});

const START = { x: [1, 2], scale: 1, cell: "a b", on: false, laws: { a: 1 }, seen: [] };

test("the address keeps what differs from the start", () => {
  const now = { ...START, x: [1, -2.5], cell: "c&d=e", on: true, laws: { a: 2 }, seen: ["q"] };
  const hash = host.writeHash("hero-1", START, (key) => now[key]);
  assert.equal(hash, "#hero-1&x=1,-2.5&cell=c%26d%3De&on=true");
  assert.deepEqual(host.readHash(hash, "hero-1", START),
    { x: [1, -2.5], cell: "c&d=e", on: true });
  assert.equal(host.writeHash("hero-1", START, (key) => START[key]), "");
});

test("an address that does not fit is left out, piece by piece", () => {
  const read = (hash) => host.readHash(hash, "hero-1", START);
  assert.deepEqual(read("#hero-1&x=1&scale=no&y=2&on=maybe&laws=1&seen=1"), {});
  assert.deepEqual(read("#hero-1&x=1,,&scale=&scale"), {});
  assert.deepEqual(read("#hero-1&x=1,NaN&scale=Infinity"), {});
  assert.deepEqual(read("#hero-1&scale=2&x=%E0%A4%A&__proto__=1"), { scale: 2 });
  assert.deepEqual(read("#hero-2&scale=2"), {});
  assert.deepEqual(read("#%"), {});
});
