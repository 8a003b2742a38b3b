import assert from "node:assert/strict";
import test from "node:test";
import { load, near, vectors } from "./load.mjs";

const [roof, bars, core] = await Promise.all(["roof", "roof_bars", "core"].map(load));
const { data, rows, widths, programs, cases, roofs } = vectors("roofline");
const START = {
  operation: "forward", chip: "H100", dtype: "bfloat16", rows: 8192, n: 4096, programs: 0,
};
const at = (change) => roof.answers(data, { ...START, ...change });
const said = (change, tables = data) =>
  roof.finding(tables, roof.answers(tables, { ...START, ...change }));

test("the sliders stop where the package says", () => {
  assert.deepEqual([roof.ROWS, roof.WIDTHS, roof.PROGRAMS], [rows, widths, programs]);
});

test("bytes, item by item, flops and times are those of cost", () => {
  for (const { traffic, flops, intensity, floor, ...state } of cases) {
    const found = roof.items(data, state);
    const isOne = data.passes[state.operation].length === 1;
    assert.deepEqual(found.map(({ pass, verb, array, bytes }) =>
      [`${isOne || pass === "sum" ? "" : `${pass}: `}${verb} ${array}`, bytes]), traffic);
    assert.equal(roof.flops(data, state), flops);
    near(roof.intensity(data, state), intensity);
    assert.ok(Math.abs(roof.floor(data, state) / floor - 1) < 1e-12);
  }
});

test("the roofs are cost's, and without a cited rate there is no flat part", () => {
  for (const [chip, dtype, x, rate] of roofs) {
    assert.ok(Math.abs(roof.roof(data.chips[chip], dtype, x) / rate - 1) < 1e-12);
  }
  assert.equal(roof.roof(data.chips.B200, "float32", 1e9), 8e21);
});

test("no norm reaches the flat part: the title holds for every chip, type and operation", () => {
  for (const chip of Object.values(data.chips)) {
    for (const dtype of Object.keys(data.bytes)) {
      for (const { x } of at({ dtype, rows: 131072, n: 65536 }).all) {
        const flat = Math.min(roof.peak(chip, dtype), roof.peak(chip, "float32"));
        assert.ok(4 * chip.bandwidth * x < flat, `${chip.name} ${dtype} ${x}`);
      }
    }
  }
});

test("three bars: the ways of an operation, or two and the other norm done the same way", () => {
  const named = (operation) => at({ operation }).bars.map((bar) => bar.operation);
  assert.deepEqual(named("add_then_forward"),
    ["add_forward", "add_then_forward", "add_forward_unfused"]);
  assert.deepEqual(named("forward"), ["forward", "forward_unfused", "layer_norm_forward"]);
  assert.deepEqual(named("layer_norm_backward_unfused"),
    ["layer_norm_backward", "layer_norm_backward_unfused", "backward_unfused"]);
  for (const operation of Object.keys(data.passes)) {
    assert.equal(at({ operation }).bars.length, 3);
    assert.equal(at({ operation }).chosen.operation, operation);
  }
});

test("a bar is as long as its floor, without gaps", () => {
  const { chosen } = at({ operation: "backward", programs: 132 });
  const parts = bars.laid(chosen);
  near([parts[0].from, parts.at(-1).to], [0, chosen.floor]);
  parts.slice(1).forEach((part, i) => assert.equal(part.from, parts[i].to));
  assert.deepEqual(parts.map(bars.kindOf), ["is-input", "is-input", "is-between", "is-between",
    "is-result", "is-result", "is-between", "is-between"]);
});

test("reported points lie under the roof, but for what stayed in a cache", () => {
  const found = Object.keys(data.chips).flatMap((chip) => roof.pointsOf(data, { ...START, chip }));
  assert.equal(found.length, data.points.length);
  for (const { chip, x, rate } of found) {
    assert.ok(rate < roof.roof(data.chips[chip], "bfloat16", x));
  }
  const here = at({}).bars[0].points;
  assert.deepEqual(here.map(({ seconds }) => seconds), [51.968e-6]);
});

test("numbers have three digits and a prefix", () => {
  const shown = (value, unit) => roof.si(value, unit).replace("\u00a0", " ");
  assert.equal(shown(4.0098e-5, "s"), "40.1 µs");
  assert.equal(shown(134250496, "B"), "134 MB");
  assert.equal(shown(999.6, "B"), "1.00 kB");
  assert.equal(shown(9.895e14, "flop/s"), "990 Tflop/s");
  assert.equal(shown(2.5e-12, "s"), "0.00250 ns");
  assert.equal(shown(0, "s"), "0 s");
});

test("the items in words; many passes are only counted", () => {
  const words = (change) => roof.counted(at(change).chosen).replaceAll("\u00a0", " ");
  assert.equal(words({}), "in: x 67.1 MB, weight 8.19 kB; out: y 67.1 MB, rstd 32.8 kB");
  assert.equal(words({ operation: "forward_unfused" }), "8 passes read 10 arrays and write 8");
});

test("the finding says the consequence", () => {
  assert.match(said({}), /could do 20\.0 float32 flop, and 295 on its matrix units\. This norm asks for 1\.00/);
  assert.match(said({ dtype: "float32" }), /could do 20\.0 float32 flop\. This norm asks for 0\.500: .* 98% of/);
  assert.match(said({ chip: "B200" }), /No flop rate of the B200 is cited here, so its roof has no/);
  assert.match(said({ operation: "forward_unfused" }), /moves 10\.0 times the bytes of the fused kernel/);
  assert.match(said({ operation: "add_then_forward" }), /^With the addition apart, .* 1\.25 times/);
  assert.match(said({ rows: 1 }), /The bytes need 7\.34.ns\. But no norm is reported to take less than 6\.08.µs/);
  assert.match(said({ operation: "backward", rows: 4096, programs: 1056 }), /are 26% of the bytes/);
  assert.match(said({ n: 65536, rows: 1, chip: "L4", dtype: "float32" }), /wait for the start/);
});

test("on the recorded machine the finding compares what was recorded", () => {
  const chips = { CPU: { name: "CPU", bandwidth: 2e10, flops: {}, isRecorded: true } };
  const points = [["fused", "CPU", "forward", 8192, 4096, "float32", 0.02],
    ["loop", "CPU", "forward", 8192, 4096, "float32", 0.06]];
  const tables = { ...data, chips, points };
  assert.match(said({ chip: "CPU", dtype: "float32" }, tables),
    /^Of 2 recorded ways fused comes nearest to the floor, with 1\.49 times its time; loop takes 4\.47/);
  assert.match(said({ chip: "CPU", dtype: "float32", rows: 1 }, tables), /vectors of n numbers such/);
  assert.match(said({ chip: "CPU", dtype: "float32", rows: 64 }, tables), /No flop rate of the CPU/);
});

test("colours: LayerNorm has its own", () => {
  assert.equal(bars.colourOf("layer_norm_forward"), "is-layer");
  assert.equal(bars.colourOf("add_forward"), "is-rms");
  assert.equal(core.clamp(2, [0, 1]), 1);
});
