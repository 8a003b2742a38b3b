// The arithmetic of rmsnorm_edu.conventions, driven by its records, and what two of them make of
// one row. A record holds only the fields that are not their default.
// --- pure: `node --test` runs it against vectors from conventions_atlas.py
const view = new DataView(new ArrayBuffer(8));
const MAGIC = 1.5 * 2 ** 52; // a float64 near it has no digits after the point
const POWERS = Array.from({ length: 2100 }, (_, i) => 2 ** (i - 1074)); // pow is slow

function exponent(v) {
  view.setFloat64(0, v);
  return ((view.getUint16(0) >> 4) & 0x7ff) - 1023;
}

// The step between numbers of a type at v.
const step = (v, { bits, least }) =>
  POWERS[Math.max(exponent(v), least) - bits + 1 + 1074];

// v rounded to the nearest number of a type, to the even one of two.
export function rounded(v, type) {
  if (!Number.isFinite(v)) return v;
  const from = type.twice ? Math.fround(v) : v; // ml_dtypes goes to bfloat16 through float32
  if (!Number.isFinite(from)) return from;
  const near = step(from, type);
  const result = (from / near + MAGIC - MAGIC) * near;
  return Math.abs(result) > type.max ? Math.sign(result) * Infinity : result;
}

// A whole number that grows by one from each number of the type to the next.
export function position(v, type) {
  if (Math.abs(v) === Infinity) return Math.sign(v) * (position(type.max, type) + 1);
  const size = Math.max(exponent(v), type.least) - type.least;
  return Math.sign(v) * (size * 2 ** (type.bits - 1)) + v / step(v, type);
}

// How many numbers of the type lie from a to b; ∞ where one of them is none, or infinite.
export function apart(a, b, type) {
  if (Object.is(a, b)) return 0;
  const found = Math.abs(position(a, type) - position(b, type));
  return Number.isFinite(a) && Number.isFinite(b) ? found : Infinity;
}

const common = (a, b) => (a === b ? a : "float32");
const isHalf = (name) => name !== "float32";

// The types of x and the weight after what happens before all else.
function cast({ cast_first: way }, x, w) {
  const both = common(x, w);
  return { common: [both, both], x: [w, w], weight: [x, x] }[way] ?? [x, w];
}

function xhatType(c, x, w) {
  if (!has(c, "xhat")) return "float32";
  return c.xhat_as_weight ? w : x;
}

function outputType(c, x, w) {
  if (c.output === "product") return common(xhatType(c, x, w), w);
  return c.output === "x" ? x : common(x, w);
}

const has = ({ rounds = [] }, place) => rounds.includes(place);

function sum({ sums }, squares) {
  if (sums === "float32 in sequence") return squares.reduce((a, b) => Math.fround(a + b));
  const total = squares.reduce((a, b) => a + b, 0);
  return total > 2 ** 128 - 2 ** 104 ? Infinity : total; // the largest float32 number
}

// D of a row.
function divisor(c, x, eps, low) {
  const { fround, sqrt } = Math;
  const kept = (place, v) => (has(c, place) ? low(v) : fround(v));
  const total = sum(c, x.map((v) => kept("square", fround(v * v))));
  const small = kept("eps", fround(eps));
  if (c.eps_floor) return Math.max(kept("norm", sqrt(total)), small);
  if (!c.eps_outside) {
    return fround(sqrt(kept("sum", fround(kept("mean", total / x.length) + small))));
  }
  const rms = kept("rms", fround(kept("norm", sqrt(total)) * fround(x.length ** -0.5)));
  return kept("divisor", fround(rms + small));
}

// v / D, for a row of n numbers.
function quotient(c, v, by, n, low) {
  const { fround } = Math;
  const over = fround(v / by);
  if (c.eps_floor) return fround((has(c, "unit") ? low(over) : over) * fround(Math.sqrt(n)));
  if (c.divides) return over;
  const rstd = fround(1 / by);
  return fround(v * (has(c, "rstd") ? low(rstd) : rstd));
}

// What a family returns for x and a weight of the types [x's, weight's]: { y, type, by },
// where `by` is D, the RMS and its ε.
export function applied({ record: c, eps }, x, weight, [xType, wType], types) {
  const { fround } = Math;
  const to = (name) => (name === "float32" ? fround : (v) => rounded(v, types[name]));
  const [narrow, kind] = cast(c, xType, wType);
  const [a, w, low] = [x.map(to(narrow)), weight.map(to(kind)), to(narrow)];
  const by = divisor(c, a, eps, low);
  const isWide = c.gain_offset && !has(c, "gain");
  const gainType = isWide ? "float32" : kind;
  const gain = w.map((v) => to(gainType)(fround((c.gain_offset ?? 0) + v)));
  const over = (v) => quotient(c, v, by, x.length, low);
  const product = { first: to(common(narrow, gainType)), stored: xhatType(c, narrow, kind) };
  const one = (v, i) => {
    if (c.gain_first) return product.first(over(product.first(fround(v * gain[i]))));
    if (c.gain_with_rstd) return fround(v * fround(fround(1 / by) * gain[i]));
    const xhat = to(product.stored)(over(v));
    return to(common(product.stored, gainType))(fround(xhat * gain[i]));
  };
  const type = outputType(c, narrow, kind);
  return { y: a.map(one).map(to(type)), type, by: c.eps_floor ? by / Math.sqrt(x.length) : by };
}

// D without its roundings, from the mean square of n numbers.
function law({ record: c, eps }, square, n) {
  const rms = Math.sqrt(square);
  if (c.eps_floor) return Math.max(rms, eps / Math.sqrt(n));
  return c.eps_outside ? rms + eps : Math.sqrt(square + eps);
}

const MANTISSAS = [1, 1.5, 2, 3, 5, 7];
export const STEPS = [-48, 24]; // 10⁻⁸ to 10⁴, six to a power of ten
export function scaleAt(k) {
  const power = Math.floor(k / 6);
  return +`${MANTISSAS[k - 6 * power]}e${power}`;
}
export function stepAt(scale) {
  const all = Array.from({ length: STEPS[1] - STEPS[0] + 1 }, (_, i) => STEPS[0] + i);
  const off = (k) => Math.abs(Math.log(scale / scaleAt(k)));
  return all.reduce((best, k) => (off(k) < off(best) ? k : best));
}

export const BINS = [[0, "0"], [1, "1"], [2, "2"], [10, "≤10"], [100, "≤100"],
  [Number.MAX_VALUE, ">100"], [Infinity, "∞"]];

// Everything that the figure shows of a state.
export function answers(data, state) {
  const { types } = data;
  const { dtype, scale, feature } = state;
  const kinds = [dtype, state.weight === "same" ? dtype : state.weight];
  const x = data.x.map((k) => rounded(scale * (k / 1e3), types[dtype]));
  const square = x.reduce((s, v) => s + v * v, 0) / x.length;
  const gains = data.gain.map((k) => // in a half type they are multiples of 1/64
    (isHalf(kinds[1]) ? Math.trunc(k / 2 ** 10) / 64 : k / 2 ** 16));
  const gain = x.map((_, i) => gains[i % gains.length]);
  const both = [state.first, state.second].map((name) => {
    const family = data.families[name];
    const weight = gain.map((g) => g - (family.record.gain_offset ?? 0));
    const found = applied(family, x, weight, kinds, types);
    const [lines, says] = family.code[data.kinds.indexOf(kinds.join(" "))]
      .map((all) => all.map((k) => data.texts[k]));
    const isLost = found.by === 0 || found.by === Infinity;
    return { ...family, ...found, isLost, lines, says, law: law(family, square, x.length) };
  });
  const type = both.map((f) => f.type).find(isHalf) ?? "float32"; // the narrower of the two
  const shown = both.map(({ y }) => y.map((v) => rounded(v, types[type])));
  const ulps = shown[0].map((v, i) => apart(v, shown[1][i], types[type]));
  const counts = BINS.map(([most], i) =>
    ulps.filter((u) => u <= most && (i === 0 || u > BINS[i - 1][0])).length);
  const i = feature - 1;
  return {
    ...state, types, x, square, both, type, shown, ulps, counts,
    differ: x.length - counts[0], most: Math.max(...ulps), code: paired(both),
    read: { x: x[i], gain: gain[i], y: both.map(({ y }) => y[i]), ulps: ulps[i] },
  };
}

// The lines of both, by role: { role, lines: [one, other], differs }; none where one lacks it.
const ROLES = ["cast", "size", "divisor", "xhat", "return"];
const paired = (both) => ROLES.map((role, i) => {
  const lines = both.map((family) => family.lines[i]);
  return { role, lines, differs: lines[0] !== lines[1] };
});

// --- what it means, in a sentence
export const size = (core, v) => core.number(v).replace(/^1\.0+\u00a0×\u00a0/, "");

// A number with as many digits as its type needs.
export function exactly(core, v, digits) {
  if (Number.isNaN(v)) return "nan";
  if (Math.abs(v) === Infinity) return v < 0 ? "−∞" : "∞";
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return core.power(v, digits - 1);
  return `${+v.toPrecision(digits)}`.replace("-", "−");
}

export const inUlps = (core, ulps, y) => {
  if (ulps === 0) return y.some(Number.isNaN) ? "both are nan" : "equal";
  if (ulps === Infinity) return "one is no number";
  return `${ulps < 1e4 ? ulps : core.number(ulps)} ulp${ulps === 1 ? "" : "s"} apart`;
};

const upTo = (core, most) => (most === 1 ? "none by more than one ulp"
  : `by up to ${most < 1e4 ? most : core.number(most)} ulps`);

export function share(differ, n) {
  if (differ === n) return `All ${n} outputs`;
  const percent = (100 * differ) / n;
  return `${percent < 1 ? percent.toFixed(1) : Math.round(percent)}% of the outputs`;
}

// Why a family has no normal outputs; null where it has.
function broken({ by, record }, { dtype, x }) {
  const [what, mean] = has(record, "square") ? ["x²", "x²"] : ["‖x‖", "the RMS"];
  if (by === Infinity) {
    return `returns 0 everywhere: ${what} overflows to infinity in ${dtype}, and x\u00a0/\u00a0∞ `
      + "is 0.";
  }
  if (by !== 0) return null;
  return `divides by 0: in ${dtype} ${x.every((v) => v === 0) ? "x" : mean} is 0, and so is ε.`;
}

function brokenOnes(last) {
  const [one, other] = last.both.map((family) => broken(family, last));
  if (one && one === other) return `Each of the two ${one}`;
  return [one, other].map((text, i) => text && `${last.both[i].label} ${text}`).filter(Boolean)
    .join(" ");
}

// The words for what one does and the other does not, at most two of each.
function reasons(both) {
  const own = both.map(({ says }, i) =>
    says.filter((text) => !both[1 - i].says.includes(text)));
  return own.map((texts, i) => (texts.length
    ? `${both[i].label} ${texts.slice(0, 2).join(" and ")}` : "")).filter(Boolean).join("; ");
}

function epsDecides(core, { both, square, most }) {
  const [large, small] = both[0].law > both[1].law ? both : [both[1], both[0]];
  const factor = large.law / small.law;
  const beside = large.record.eps_outside ? `an RMS of ${size(core, Math.sqrt(square))}`
    : `a mean square of ${size(core, square)}`;
  if (factor < 1.1) {
    return `${upTo(core, most)}: ε is ${both[0].epsText} for ${both[0].label} and `
      + `${both[1].epsText} for ${both[1].label}, beside ${beside}.`;
  }
  return `and ε decides: ${large.label}’s are ${core.number(factor)} times smaller, for its ε `
    + `of ${large.epsText} stands beside ${beside}.`;
}

// Where D is a power of two, x̂ has the digits of x.
function isEasy({ both, types, type }) {
  const { bits } = types[type];
  return isHalf(type) && both.every(({ by }) =>
    Math.abs(by / 2 ** Math.round(Math.log2(by)) - 1) < 2 ** -bits);
}

function roundingDecides(core, last, why, epsOff) {
  const { both, most } = last;
  const eps = `, and ε adds to it: ${both[0].epsText} beside ${both[1].epsText}`;
  const easy = isEasy(last) ? " D is close to a power of two here, and x\u00a0/\u00a0D has hardly "
    + "a digit more than x." : "";
  return `${upTo(core, most)}: ${why}${epsOff > 0.05 ? eps : ""}.${easy}`;
}

export function finding(core, last) {
  const { both, types, type, dtype, x, differ } = last;
  const lost = brokenOnes(last);
  if (lost) return lost;
  const zeros = x.filter((v) => v === 0).length;
  const few = zeros ? `In ${dtype} ${zeros} of the ${x.length} inputs are 0. ` : "";
  const kinds = both[0].type === both[1].type ? ""
    : `${both[0].label} returns ${both[0].type}, ${both[1].label} ${both[1].type}. In ${type}: `;
  if (differ === 0) return few + kinds + same(last);
  const off = (a, b) => Math.abs(a / b - 1) * 2 ** (types[type].bits - 1); // in ulps
  const [why, epsOff] = [reasons(both), off(both[0].law, both[1].law)];
  const isDrifting = both.some(({ by, law: exact }) => off(by, exact) > 2);
  const isEps = why === "" || (!isDrifting && epsOff > 1);
  return `${few}${kinds}${share(differ, x.length)} differ, ${
    isEps ? epsDecides(core, last) : roundingDecides(core, last, why, epsOff)}`;
}

function same({ both, code, x: { length: n } }) {
  const marked = code.filter(({ differs }) => differs);
  if (marked.length === 0) return `No line differs, and none of the ${n} outputs.`;
  const one = both.find(({ record }) => record.gain_offset);
  if (one && marked.every(({ role }) => role === "return")) {
    return `None of the ${n} outputs differs: ${one.label} adds 1 to its weight, and its weight `
      + "here is the gain − 1.";
  }
  return `None of the ${n} outputs differs. The marked line${marked.length > 1 ? "s do" : " does"},`
    + " but at this size and in this type nothing is left of it.";
}
