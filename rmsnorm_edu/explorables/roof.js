// What the roofline figure computes: bytes, arithmetic, roofs, and what they mean in a sentence.
// The formulas are those of rmsnorm_edu.cost; its tables of passes and chips come as `data`.
export const ROWS = Array.from({ length: 18 }, (_, i) => 2 ** i);
export const WIDTHS = Array.from({ length: 11 }, (_, i) => 64 * 2 ** i);
export const PROGRAMS = [0, 4, 16, 40, 58, 108, 132, 148, 264, 528, 1056];
const START = 5e-6; // seconds: about what starting a kernel takes

// Bytes of an array; `own` is the size of one number of the norm's type.
export function size({ perFeature, perRow, ownType }, array, { rows, n }, own) {
  const numbers = perFeature.includes(array) ? n : perRow.includes(array) ? rows : rows * n;
  return numbers * (ownType.includes(array) ? own : Math.max(own, 4));
}

const partials = (data, { operation, programs }) => programs * (data.partials[operation] ?? 0);

// Each array that crosses between memory and chip, in order: { pass, verb, array, bytes }.
export function items(data, state) {
  const own = data.bytes[state.dtype];
  const found = data.passes[state.operation]
    .filter(([pass]) => own < 4 || !pass.startsWith("cast"))
    .flatMap(([pass, reads, writes]) => [["read", reads], ["write", writes]].flatMap(
      ([verb, arrays]) => arrays.map((array) => ({
        pass, verb, bytes: size(data, array, state, own),
        array: own < 4 ? array : array.replace(/^wide /, ""), // all are as wide
      }))));
  const bytes = partials(data, state) * state.n * Math.max(own, 4);
  const sums = ["write", "read"].map((verb) => ({ pass: "sum", verb, array: "partials", bytes }));
  return bytes ? [...found, ...sums] : found;
}

export const moved = (data, state) => items(data, state).reduce((sum, { bytes }) => sum + bytes, 0);

export function flops(data, state) {
  const [element, row] = data.flops[state.operation];
  return state.rows * (element * state.n + row) + partials(data, state) * state.n;
}

export const intensity = (data, state) => flops(data, state) / moved(data, state);

// The highest rate of a chip in a type; Infinity where no source gives one.
export const peak = (chip, dtype) => chip.flops[dtype] ?? Infinity;
export const roof = (chip, dtype, x) => Math.min(peak(chip, dtype), chip.bandwidth * x);

// The least time in seconds. A norm of a narrow type computes in float32, so that rate counts.
export const floor = (data, state) => Math.max(
  moved(data, state) / data.chips[state.chip].bandwidth,
  flops(data, state) / peak(data.chips[state.chip], "float32"));

export const familyOf = (data, operation) =>
  Object.values(data.families).find(({ ways }) => ways.some(([, name]) => name === operation));

// The ways of a family; where they are two, beside them the other norm in the chosen way.
export function compared(data, family, operation) {
  const [own, other] = [family, data.families[family.beside]].map((found) =>
    found?.ways.map(([way, name]) => ({ way, operation: name, family: found })));
  const at = own.findIndex((bar) => bar.operation === operation);
  return own.length > 2 ? own : [...own, other[at]];
}

// All that the figure shows at a state.
export function answers(data, state) {
  const family = familyOf(data, state.operation);
  const points = pointsOf(data, state);
  const one = (operation) => {
    const there = { ...state, operation };
    const parts = items(data, there);
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    const x = flops(data, there) / bytes;
    return { operation, parts, bytes, flops: flops(data, there), x, floor: floor(data, there) };
  };
  const all = Object.keys(data.passes).map(one).sort((a, b) => a.x - b.x);
  const find = (operation) => all.find((found) => found.operation === operation);
  return {
    ...state, family, all, chosen: find(state.operation), hardware: data.chips[state.chip],
    way: family.ways.find(([, name]) => name === state.operation)[0],
    points, bars: compared(data, family, state.operation).map((bar) => ({
      ...bar, ...find(bar.operation), isOther: bar.family !== family,
      points: points.filter((p) => p.operation === bar.operation).filter(isHere(state)),
    })),
  };
}

// 40.1 µs, 134 MB, 3.35 Tflop/s: three digits and a prefix.
const PREFIXES = ["n", "µ", "m", "", "k", "M", "G", "T", "P"];
export function si(value, unit) {
  if (value === 0) return `0\u00a0${unit}`;
  const digits = (v) => Number(v.toPrecision(3));
  const step = Math.min(5, Math.max(-3, Math.floor(Math.log10(digits(value)) / 3)));
  const text = digits(value / 1000 ** step);
  const shown = text >= 100 ? String(text) : text.toPrecision(3);
  return `${shown}\u00a0${PREFIXES[step + 3]}${unit}`;
}

export const flop = (value) => (value >= 100 ? String(Math.round(value)) : value.toPrecision(3));
const percent = (share) => `${(100 * share).toPrecision(2)}%`;

// The share of the bytes that the arrays of a name have.
const share = ({ parts, bytes }, isIn) =>
  parts.reduce((sum, part) => sum + (isIn(part) ? part.bytes : 0), 0) / bytes;

// Why only bytes count: what the chip could compute while one byte arrives.
function waiting({ chosen, hardware: { name, flops: rates, bandwidth }, dtype }) {
  const rate = rates.float32;
  if (!rate) {
    return `No flop rate of the ${name} is cited here, so its roof has no flat part. The slope is `
      + "enough: on it only fewer bytes make a norm faster.";
  }
  const units = dtype !== "float32" && rates[dtype]
    ? `, and ${flop(rates[dtype] / bandwidth)} on its matrix units` : "";
  return `While a byte arrives, the ${name} could do ${flop(rate / bandwidth)} float32 flop${units}. `
    + `This norm asks for ${flop(chosen.x)}: its arithmetic waits for memory at least `
    + `${percent(1 - chosen.x * bandwidth / rate)} of the time.`;
}

// What the state means; its numbers stand in the equation.
export function finding(data, last) {
  const { chosen, bars: [fused], way, hardware, rows } = last;
  const sums = share(chosen, ({ array }) => array === "partials");
  const vectors = share(chosen, ({ array }) => data.perFeature.includes(array));
  if (way !== "fused") {
    const times = chosen.bytes / fused.bytes;
    return `${way === "unfused" ? "Operation by operation" : "With the addition apart"}, the same `
      + `answer moves ${flop(times)} times the bytes of the fused kernel. So its least time is `
      + `${flop(times)} times as long, on every chip; the arithmetic hardly differs.`;
  }
  if (chosen.floor < START && !hardware.isRecorded) {
    const others = data.points.filter(([, on]) => !data.chips[on].isRecorded);
    const least = Math.min(...others.map((point) => point.at(-1)));
    return `The bytes need ${si(chosen.floor, "s")}. But no norm is reported to take less than `
      + `${si(least, "s")}: at this size you wait for the start of a kernel, not for memory.`;
  }
  if (sums > 0.2) {
    return `The partial sums of dweight are ${percent(sums)} of the bytes. Fewer programs, or more `
      + "rows for each, make that share small.";
  }
  if (vectors > 0.1) {
    return `With ${rows === 1 ? "one row" : `${rows} rows`}, vectors of n numbers such as the `
      + `weight are ${percent(vectors)} of the bytes. More rows share them.`;
  }
  return (hardware.isRecorded && recorded(last)) || waiting(last);
}

// Measured points of a chip in a type: where each lies under the roof, by its own shape and time.
export function pointsOf(data, { chip, dtype }) {
  return data.points.map(([by, on, operation, rows, n, type, seconds]) =>
    ({ by, chip: on, operation, rows, n, dtype: type, seconds }))
    .filter((point) => point.chip === chip && point.dtype === dtype).map((point) => {
      const work = flops(data, { ...point, programs: 0 });
      return { ...point, x: work / moved(data, { ...point, programs: 0 }),
        rate: work / point.seconds };
    });
}

const isHere = ({ rows, n }) => (point) => point.rows === rows && point.n === n;

// Of the recorded ways at this shape the nearest to the floor and the furthest.
function recorded(last) {
  const found = last.points.filter((p) => p.operation === last.operation).filter(isHere(last))
    .sort((a, b) => a.seconds - b.seconds);
  if (found.length < 2) return "";
  const [best, worst] = [found[0], found.at(-1)];
  return `Of ${found.length} recorded ways ${best.by} comes nearest to the floor, with `
    + `${flop(best.seconds / last.chosen.floor)} times its time; ${worst.by} takes `
    + `${flop(worst.seconds / last.chosen.floor)} times. `;
}

// The items in words: "x 67.1 MB, weight 8.19 kB in; y 67.1 MB, rstd 32.8 kB out".
export function itemised({ parts }) {
  const words = (verb) => parts.filter((part) => part.verb === verb)
    .map(({ array, bytes }) => `${array}\u00a0${si(bytes, "B")}`).join(", ");
  return `in: ${words("read")}; out: ${words("write")}`;
}

// The same for the eye: many passes are only counted.
export function counted({ parts }) {
  const passes = new Set(parts.map(({ pass }) => pass)).size;
  const count = (verb) => parts.filter((part) => part.verb === verb).length;
  return parts.length < 10 ? itemised({ parts })
    : `${passes} passes read ${count("read")} arrays and write ${count("write")}`;
}
