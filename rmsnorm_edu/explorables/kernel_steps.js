// What a recorded kernel has done up to a moment: memory, registers, and what it means in words.
// A moment is a step of a program, or one fold of a step that reduces.

// --- pure: `node --test` runs it on recordings of kernels.trace
const range = (n) => Array.from({ length: n }, (_, i) => i);
export const size = (shape) => shape.reduce((a, b) => a * b, 1);

// A step of the recording with its note: line, kind, text, name, array; offsets written out.
export function unpack(scene, program, index) {
  const [note, shape, values, ...rest] = scene.programs[program].steps[index];
  const [line, kind, text, name, array] = scene.notes[note];
  const step = { line, kind, text, name, array, shape, values };
  if (array !== null) {
    const [offsets, mask] = rest;
    step.offsets = Array.isArray(offsets) ? offsets : values.map((_, i) => offsets + i);
    step.mask = [...mask].map((c) => c === "1");
  }
  if (kind === "reduce") [step.axis, step.from, step.of] = rest;
  return step;
}

const folds = ({ axis, from }) => Math.ceil(Math.log2(axis === null ? size(from) : from[axis]));

// Every moment of a program: [step, fold].
export const moments = (scene, program) => scene.programs[program].steps.flatMap((_, i) => {
  const step = unpack(scene, program, i);
  if (step.kind !== "reduce") return [[i, 0]];
  return range(Math.max(1, folds(step))).map((fold) => [i, fold + 1]);
});

// What lies in the lanes after each fold: the second half is added to the first, along the axis.
export function folded(step) {
  const from = step.axis === null ? [size(step.from)] : step.from;
  const [rows, columns] = from.length === 1 ? [1, ...from] : from;
  const across = from.length === 2 && step.axis === 0;
  let grid = range(rows).map((r) => step.of.slice(r * columns, (r + 1) * columns));
  const turn = (g) => (across ? g[0].map((_, c) => g.map((row) => row[c])) : g);
  const levels = [grid];
  grid = turn(grid);
  while (grid[0].length > 1) {
    const half = Math.ceil(grid[0].length / 2);
    grid = grid.map((row) => range(half).map((i) => row[i] + (row[i + half] ?? 0)));
    levels.push(turn(grid));
  }
  if (levels.length > 1) levels.pop(); // the last one is the recorded sum, to its last digit
  return [...levels, across ? [step.values] : step.values.map((v) => [v])];
}

// All steps until the moment, in the interpreter's order: one program after the other.
function past(scene, program, index) {
  const done = (p) => range(p === program ? index + 1 : scene.programs[p].steps.length)
    .map((i) => [p, unpack(scene, p, i)]);
  return range(program + 1).flatMap(done);
}

const reads = (kind) => kind === "load" || kind === "atomic";
const writes = (kind) => kind === "store" || kind === "atomic";

// Every array: its values, the bytes asked of it so far, and its cells' states: "load", "store",
// "masked" now, "was" where this program has been before.
export function memory(scene, program, index) {
  const found = scene.arrays.map(({ name, shape, itemsize, values }) => ({
    name, itemsize, values: values ? [...values] : Array(size(shape)).fill(null),
    states: Array(size(shape)).fill(""), read: 0, written: 0,
  }));
  const steps = past(scene, program, index);
  steps.forEach(([p, step], at) => {
    if (step.array === null) return;
    const array = found[step.array];
    const lanes = step.mask.filter(Boolean).length;
    if (reads(step.kind)) array.read += lanes * array.itemsize;
    if (writes(step.kind)) array.written += lanes * array.itemsize;
    const isNow = at === steps.length - 1;
    step.offsets.forEach((offset, lane) => {
      if (offset < 0 || offset >= array.values.length) return;
      if (writes(step.kind) && step.mask[lane]) array.values[offset] = step.values[lane];
      if (p === program && !isNow && step.mask[lane]) array.states[offset] = "was";
    });
    if (!isNow) return;
    const light = (on, state) => step.offsets.forEach((offset, lane) => {
      if (step.mask[lane] === on && offset in array.states) array.states[offset] = state;
    });
    light(false, "masked");
    light(true, step.kind);
  });
  return found;
}

// The variables of a program in the order of their first value: null before they have one. Where
// there is little room those are near that were written last, then those that come next.
const ROOM = 6;
export function registers(scene, program, index) {
  const found = new Map();
  scene.programs[program].steps.forEach((_, i) => {
    const { name, shape, values } = unpack(scene, program, i);
    if (!name) return;
    const old = found.get(name) ?? { name, shape, values: null, isNow: false, at: -i };
    found.set(name, i <= index ? { name, shape, values, isNow: i === index, at: i } : old);
  });
  const near = [...found.values()].sort((a, b) => b.at - a.at).slice(0, ROOM);
  return [...found.values()].map((one) => ({ ...one, isNear: near.includes(one) }));
}

// The array that a program has touched last, or will touch first.
export function touched(scene, program, index) {
  const all = scene.programs[program].steps.map((_, i) => unpack(scene, program, i).array);
  return all.slice(0, index + 1).findLast((a) => a !== null) ?? all.find((a) => a !== null) ?? 0;
}

// The lanes that the last load or store with as many lanes left alone.
export function idle(scene, program, index, lanes) {
  for (let i = index; i >= 0; i -= 1) {
    const { mask } = unpack(scene, program, i);
    if (mask?.length === lanes) return mask.map((on) => !on);
  }
  return Array(lanes).fill(false);
}

// Writes an attribute where it changes.
export function attr(el, name, value) {
  if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value);
}

// --- words
// A number for a narrow cell: three digits, three decimals, or a power of ten as programs write it.
export function show(value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  const isFar = size !== 0 && (size < 5e-4 || size >= 1e5);
  const short = isFar ? value.toExponential(0) : String(+(+value.toPrecision(3)).toFixed(3));
  return short.replaceAll("-", "−").replace("+", "");
}

// [0, 1, 2, 5, 7, 8] as "0–2, 5, 7–8".
export function runs(numbers) {
  const found = [];
  numbers.forEach((n) => {
    const last = found.at(-1);
    if (last && n === last[1] + 1) last[1] = n;
    else found.push([n, n]);
  });
  return found.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const chosen = (list, flags, wanted) => list.filter((_, i) => flags[i] === wanted);

// Where masked lanes point: into another row, or out of the array.
function astray(array, step) {
  const gone = [...new Set(chosen(step.offsets, step.mask, false))].sort((a, b) => a - b);
  const end = size(array.shape);
  const where = `${gone.length === 1 ? "offset" : "offsets"} ${runs(gone)}`;
  if (gone.some((offset) => offset >= end)) return `${where}, and ${array.name} ends at ${end - 1}`;
  return `${where}, which belong${gone.length === 1 ? "s" : ""} to another row`;
}

// Who has loaded these numbers before: this program, an earlier one, or nobody.
export function readBefore(scene, program, index) {
  const now = unpack(scene, program, index);
  const own = new Set(chosen(now.offsets, now.mask, true));
  const before = past(scene, program, index).slice(0, -1).filter(([, step]) =>
    reads(step.kind) && step.array === now.array
      && step.offsets.some((o, lane) => step.mask[lane] && own.has(o))).map(([p]) => p);
  if (before.includes(program)) return "this";
  return before.length ? "earlier" : "";
}

const AGAIN = {
  this: " This program has read them before: if no cache has kept them, memory is asked twice.",
  earlier: " An earlier program has read them too: on a GPU a cache may answer.",
  "": "",
};

function accessed(scene, program, index, step) {
  const array = scene.arrays[step.array];
  const on = chosen(step.offsets, step.mask, true);
  const off = step.mask.length - on.length;
  const isOne = [on.length === 1, off === 1];
  const [verb, nothing] = reads(step.kind) ? ["read", isOne[1] ? "gets 0" : "get 0"]
    : ["write", isOne[1] ? "writes nothing" : "write nothing"];
  const did = on.length === 0 ? "No lane touches memory."
    : `${many(on.length, "lane")} ${verb}${isOne[0] ? "s" : ""} ${isOne[0] ? "offset" : "offsets"} `
      + `${runs(on)} of ${array.name}: ${on.length * array.itemsize} bytes.`;
  const masked = off === 0 ? "" : ` ${many(off, "lane")} ${isOne[1] ? "is" : "are"} masked and `
    + `${nothing}: ${isOne[1] ? "it points" : "they point"} at ${astray(array, step)}.`;
  const again = reads(step.kind) && on.length ? AGAIN[readBefore(scene, program, index)] : "";
  return did + masked + again;
}

function reduced(step, fold) {
  const lanes = step.axis === null ? size(step.from) : step.from[step.axis];
  const rows = size(step.from) / lanes;
  const all = folds(step);
  const left = Math.ceil(lanes / 2 ** fold);
  const each = rows > 1 ? `, in each of ${rows} sums` : "";
  if (fold < all) {
    return `Fold ${fold} of ${all}: the right half of the lanes is added to the left half, and `
      + `${left * 2} numbers become ${left}${each}.`;
  }
  const what = rows > 1 ? `${rows} sums` : `${step.text} = ${show(step.values[0])}`;
  return `Fold ${fold} of ${all}: ${what}. ${lanes} lanes need ${many(all, "fold")}, a million `
    + "need 20. Masked lanes have added 0. Which lanes meet first, a compiler chooses.";
}

function computed(scene, program, index, step) {
  const lanes = step.values.length;
  if (lanes === 1) return "One number, the same for all lanes of this program.";
  const off = idle(scene, program, index, lanes).filter(Boolean).length;
  return `All ${lanes} lanes compute at once, each with its own numbers.`
    + (off ? ` The ${off} masked ones compute as well, and nobody keeps what they find.` : "");
}

const sameKernel = (scene, program) =>
  scene.programs.filter((other) => other.kernel === scene.programs[program].kernel).length;

// The moment in words: what this step does, and why.
export function finding(scene, program, [index, fold]) {
  const step = unpack(scene, program, index);
  const count = (v) => step.values.filter((value) => value === v).length;
  return {
    program: () => `Program ${scene.programs[program].id} of ${sameKernel(scene, program)} begins. `
      + "All run the same lines; only this number tells one from another.",
    range: () => `The lanes get their numbers, ${runs(step.values)}. How many there are is a power `
      + "of two, whatever the length of a row.",
    fill: () => `${step.values.length} lanes start at ${step.text}.`,
    index: () => (step.values.length === 1 ? "A place, from this program’s number."
      : `Each lane gets a place of its own: ${runs(step.values)}.`),
    mask: () => (count(0) === 0 ? `All ${count(1)} lanes have a number to work on.`
      : `${count(1)} of ${step.values.length} lanes have a number to work on. The other `
        + `${count(0)} will be masked.`),
    cast: () => "The same numbers in another type.",
    compute: () => computed(scene, program, index, step),
    reduce: () => reduced(step, fold),
  }[step.kind]?.() ?? accessed(scene, program, index, step);
}

// The step as an equation: what gets a value, and from what.
export function formula({ kind, text, name, array }, arrays) {
  if (reads(kind)) return `${name ? `${name} = ` : ""}load(${text})`;
  if (writes(kind)) return `store(${arrays[array].name}, ${text})`;
  return name ? `${name} = ${text}` : text;
}

// The rows of lanes under the registers: what the step gives, or a tree of folds up to this one.
function lanesNow(scene, program, index, fold, step) {
  const states = (n) => idle(scene, program, index, n).map((off) => (off ? "masked" : ""));
  if (step.kind !== "reduce") {
    const [{ shape, values }, off] = [step, states(step.values.length)];
    return [{ label: "→", shape, values, states: off }];
  }
  const levels = folded(step);
  const rows = levels[0].length > 1 ? [levels[fold]] : levels.slice(0, fold + 1);
  return rows.map((grid, i) => ({
    label: i === rows.length - 1 ? "→" : "", shape: [grid.length, grid[0].length],
    values: grid.flat(), states: i === 0 && rows.length > 1 ? states(grid.flat().length) : [],
  }));
}

// How many rows of lanes a moment of the recording may need.
export const tallest = (scene) => Math.max(...scene.programs.flatMap((_, program) =>
  moments(scene, program).map(([index, fold]) => {
    const step = unpack(scene, program, index);
    return lanesNow(scene, program, index, fold, step)
      .reduce((sum, { shape }) => sum + (shape.length > 1 && shape[1] > 1 ? shape[0] : 1), 0);
  })));

// All that the figure shows at a moment.
export function moment(scene, program, [index, fold]) {
  const step = unpack(scene, program, index);
  const found = memory(scene, program, index);
  const variables = registers(scene, program, index).map((v) => ({
    ...v, states: idle(scene, program, index, size(v.shape)).map((off) => (off ? "masked" : "")),
  }));
  const row = ({ name, values }) => [name, ...(values ?? []).map((v) => show(v) || "empty")];
  return {
    line: step.line, memory: found, variables, touched: touched(scene, program, index),
    lanes: lanesNow(scene, program, index, fold, step),
    formula: formula(step, scene.arrays),
    finding: finding(scene, program, [index, fold]),
    table: [...found, ...variables].map(row),
  };
}
