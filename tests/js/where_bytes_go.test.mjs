import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const streams = await load("streams");
const { data, bytes } = vectors("where_bytes_go");
const at = (rung, output = "touched", shape = 1) => streams.answers(data, { rung, output, at: shape });
const said = (...state) => streams.finding(at(...state));

test("the bytes that cross the memory are those of the package", () => {
  assert.deepEqual(streams.RUNGS, Object.keys(bytes));
  for (const rung of streams.RUNGS) {
    const { chosen, unit } = at(rung);
    assert.equal(chosen.count * unit, bytes[rung]);
    assert.equal(chosen.streams.length, chosen.count);
    near(chosen.copies, chosen.count / 3);
  }
});

test("times are for all rows, in milliseconds and in copies, touched and fresh", () => {
  near([at("fused").recorded.ms, at("fused").recorded.copies], [12, 1.2]);
  near([at("fused", "fresh").recorded.ms, at("fused", "fresh").recorded.copies], [15, 1.5]);
  assert.equal(at("copy", "fresh").recorded.faults, 32769);
  near(at("loop").recorded.ms, (20 * 8192) / 8);
  near(at("loop", "touched", 0).recorded.ms, (10 * 512) / 4);
  near(at("numpy").chosen.counted, (10 * at("numpy").chosen.count) / 3);
});

test("what is not recorded for fresh memory is shown as it was recorded", () => {
  const last = at("numpy", "fresh");
  assert.equal(last.isFresh, false);
  assert.equal(last.recorded.ms, 100);
  assert.match(streams.finding(last), /only copy and fused are recorded/);
});

test("the finding says what explains the time", () => {
  assert.match(said("copy"), /the program asks for two: .* \(write-allocate\)\.$/);
  assert.match(said("loop"), /moves no more than a copy, and takes 2048 times as long\. Python/);
  assert.match(said("numpy"), /3\.3 times those of a copy\. Recorded: 10\.0 times the copy’s time\. The rest: .* fresh in every call, with 1\u2009152 page faults/);
  assert.match(said("einsum"), /^6 passes over the memory, 2\.0 times .* The bytes explain the time\.$/);
  assert.match(said("blocked"), /as in a copy; 3 more in the cache\. .* The rest: one thread, and its/);
  assert.match(said("fused"), /Recorded: 1\.2 times the copy’s time\. The bytes explain the time\.$/);
  assert.match(said("streamed"), /^2 passes over the memory, 0\.67 times .* Recorded: 0\.80 times .*The bytes explain/);
  assert.match(said("numpy", "touched", 0), /less than counted: part of the arrays was still in/);
});

test("fresh memory costs time and no bytes; small arrays are handed out again", () => {
  assert.match(said("copy", "fresh"), /takes 3\.0 times as long\. 32\u2009769 times a call touched/);
  assert.match(said("fused", "fresh", 0), /^No page fault/);
});

test("columns follow each other, inside the picture, and do not get wider than 64", () => {
  for (const rung of streams.RUNGS) {
    const steps = data.rungs[rung];
    const found = streams.columns(steps, [60, 316], 8);
    const flat = found.flatMap((step) => step.streams);
    assert.equal(flat.length, streams.streamsOf(data, rung).length);
    assert.ok(flat[0].x - flat[0].wide >= 59.999 && flat.at(-1).x + flat.at(-1).wide <= 316.001);
    flat.slice(1).forEach((s, i) => assert.ok(s.x - flat[i].x >= 2 * s.wide - 1e-9));
    assert.ok(flat[0].wide <= 32);
  }
});

test("an arrow points where the bytes go", () => {
  assert.equal(streams.thick({ x: 20, wide: 8 }, 0, 50),
    "M16,0V40H12L20,50L28,40H24V0Z");
  assert.equal(streams.thick({ x: 20, wide: 8 }, 50, 0),
    "M16,50V10H12L20,0L28,10H24V50Z");
});

test("numbers and names", () => {
  assert.equal(streams.whole(1234567), "1\u2009234\u2009567");
  assert.equal(streams.whole(584), "584");
  assert.deepEqual([0.99, 1.2, 12.94, 949.3].map(streams.times), ["0.99", "1.2", "12.9", "949"]);
  assert.deepEqual(["x", "y", "squares", "xhat"].map(streams.symbol), ["x", "y", "x²", "x\u0302"]);
  assert.equal(streams.colourOf("squares"), "is-between");
});

test("the axis holds what takes less than eight copies, and every counted bar", () => {
  const last = at("numpy");
  const most = streams.longest(last);
  for (const { counted, touched, fresh } of last.bars) {
    assert.ok(counted <= most);
    for (const entry of [touched, fresh]) {
      assert.ok(!entry || entry.ms <= most || entry.ms >= 8 * last.copy);
    }
  }
});

test("the name of a step breaks between words only", () => {
  assert.deepEqual(streams.wrapped("sum the squares", 20), ["sum the squares"]);
  assert.deepEqual(streams.wrapped("sum the squares", 9), ["sum the", "squares"]);
  assert.deepEqual(streams.wrapped("sum the squares", 2), ["sum", "the", "squares"]);
});
