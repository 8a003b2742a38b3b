// What the rounding cloud knows of its data, and draws of it.
// --- pure: `node --test` runs it against vectors from rounding_cloud.py
export const SIZES = [-100, 100]; // k: the largest |x| of a row is 2^k
export const STEP = 2;
const LINEAR = 4; // errors up to 4 u on a linear axis, beyond on a logarithmic one
const SHARE = 0.6; // of the height, for the linear part

// What is known of a choice. With ε = 0 only the rows that then differ are given: the small ones.
export function cellOf({ cells }, { dtype, convention, eps }) {
  const { bound, missed, own, [eps]: { holds, rows } } = cells[`${dtype} ${convention}`];
  return { bound, missed, holds, rows: rows + own.rows.slice(rows.length) };
}

// The sizes that the axis of a type shows: what it holds, and a margin for what it does not.
export const sizesOf = ({ k: [low, high] }, margin = 20) =>
  [Math.max(SIZES[0], low - margin), Math.min(SIZES[1], high + margin)];

// Where an error of v units stands, from 0 to 1 at 100% of the largest output; more is clamped.
export function height(v, u) {
  if (v <= LINEAR) return (v / LINEAR) * SHARE;
  return Math.min(1, SHARE + ((1 - SHARE) * Math.log(v / LINEAR)) / -Math.log(LINEAR * u));
}

// The rows at one k: { k, v } with v in units of u, or { k, end } "zero", "infinite" or "nan".
export function column({ levels, letters, types }, { dtype }, { rows }, k) {
  const type = types[dtype];
  const from = ((k - type.k[0]) / STEP) * type.rows;
  return [...rows.slice(from, from + type.rows)].map((letter) => {
    const at = letters.indexOf(letter);
    if (at < levels.length) return { k, v: levels[at] };
    const end = ["zero", "infinite", "nan"][at - levels.length];
    return end === "zero" ? { k, v: 1 / type.u, end } : { k, v: Infinity, end };
  });
}

export function points(data, state, cell) {
  const [low, high] = data.types[state.dtype].k;
  const found = [];
  for (let k = low; k <= high; k += STEP) found.push(...column(data, state, cell, k));
  return found;
}

// The type in which x² is kept: x's own, or float32 where that is wider.
export const squares = ({ conventions, types }, { dtype, convention }) => {
  const name = conventions[convention].narrowSquares ? dtype : "float32";
  return { name, ...types[name] };
};

// What does not fit at size 2^k, in which type, and the size where that begins.
function tooLarge(data, state, k) {
  const kept = squares(data, state);
  const edge = 2 ** Math.ceil(Math.log2(kept.max) / 2); // the first power with an infinite square
  if (2 ** k >= edge) return { what: "x²", type: kept.name, from: edge };
  if (data.conventions[state.convention].narrowNorm && state.dtype === "float16") {
    return { what: "‖x‖", type: state.dtype, from: 2 ** k };
  }
  return { what: "Σx²", type: "float32", from: 2 ** k };
}

function tooSmall(data, state, k) {
  const kept = squares(data, state);
  if (4 ** k < kept.normal) return { what: "x²", type: kept.name, from: Math.sqrt(kept.normal) };
  return { what: "the RMS", type: state.dtype, from: data.types[state.dtype].normal };
}

// What is lost below and above the sizes where the bound holds; null where nothing is.
export function edges(data, state) {
  const [low, high] = cellOf(data, state).holds;
  const [least, most] = data.types[state.dtype].k;
  return {
    low: low > least ? tooSmall(data, state, low - STEP) : null,
    high: high < most ? tooLarge(data, state, high + STEP) : null,
  };
}

export function answers(data, state) {
  const cell = cellOf(data, state);
  const type = data.types[state.dtype];
  const k = state.exponent;
  const rows = k < type.k[0] || k > type.k[1] ? [] : column(data, state, cell, k);
  const error = Math.max(...rows.map(({ v }) => v)); // −Infinity where there is no row
  return { ...state, cell, type, rows, error, edges: edges(data, state), square: 4 ** k };
}

// Powers of two below a million in full, others to two digits.
export const size = (core, value) => {
  const isWhole = Number.isInteger(value) && value < 1e6;
  return isWhole ? String(value) : core.number(value);
};

const percent = (core, value) => `${core.number(100 * value).replace(/\.0+$/, "")}%`;

// An error: "0.98 u", beyond the bound from 1% on "12.3%".
export function inWords(core, { rows, error, cell, type: { u } }) {
  if (rows.length === 0) return "–";
  if (error === Infinity) return "∞";
  return error > cell.bound && error * u > 0.01 ? percent(core, error * u)
    : `${core.number(error)} u`;
}

// What is left of the largest square in the type that keeps it.
export function keptSquare(core, data, last) {
  const kept = squares(data, last);
  if (last.square > kept.max) return "∞";
  if (last.square <= kept.least / 2) return "0";
  return last.square < kept.normal ? `${core.power(last.square)}, few digits`
    : size(core, last.square);
}

// What the norm returns there, and why.
export function finding(core, data, last) {
  const { dtype, exponent: k, type, rows, error, cell } = last;
  if (k > type.k[1]) {
    return `${dtype} has no number of this size: its largest is ${size(core, type.max)}. The `
      + "input is infinite before the norm begins.";
  }
  if (k < type.k[0]) {
    return `${dtype} has no number of this size: its smallest is ${core.power(type.least)}. The `
      + "input is a row of zeros before the norm begins.";
  }
  const lost = (k < cell.holds[0] ? tooSmall : tooLarge)(data, last, k);
  if (rows.every(({ end }) => end === "zero")) {
    return `Every output is 0: ${lost.what} overflows to infinity in ${lost.type}, and `
      + "x\u00a0/\u00a0∞ is 0.";
  }
  if (error === Infinity) {
    const eps = last.eps === "zero" ? "ε is 0" : `so is ε in ${lost.type}`;
    const what = lost.what === "x²" ? "the mean of x²" : lost.what;
    return `The outputs are infinite or not a number: ${what} is 0 in ${lost.type}, ${eps}, and `
      + "the norm divides by 0.";
  }
  if (error > cell.bound) {
    const why = last.square > squares(data, last).least / 2
      ? `below ${size(core, lost.from)} ${lost.what} has only few digits in ${lost.type}`
      : `x² is 0 in ${lost.type}, and ε has only few digits there`;
    return `Wrong by ${inWords(core, last)}: ${why}.`;
  }
  return nearest(core, data, last);
}

function nearest(core, { cells, conventions }, { dtype, convention, cell }) {
  const about = (v) => `${Math.round(100 * v)}%`;
  const { label } = conventions[convention];
  if (cell.missed < 0.005) {
    const few = cell.missed === 0 ? "every measured output is the nearest number there is"
      : `all but about one output in ${+(1 / cell.missed).toPrecision(1)} are the nearest numbers`;
    return `Below the bound. ${label} rounds to ${dtype} once, at the end: ${few}.`;
  }
  const torch = cells[`${dtype} torch`].missed;
  const other = convention === "torch" ? "" : `; of torch’s, ${about(torch)}`;
  return `Below the bound, yet about ${about(cell.missed)} of the outputs are not the nearest `
    + `${dtype} number${other}.`;
}

// --- the picture of one choice; a move of the line changes nothing here
// Everything that belongs to one choice, from below: zones, hairlines, dots, bound; names in
// `labels`, above the line that reads.
export function cloud(parts) {
  [parts.scene, parts.labels].forEach((group) => group.html(""));
  parts.box.x.domain(sizesOf(parts.last.type, parts.box.isNarrow ? 40 : 20)); // names stand there
  zones(parts);
  scale(parts);
  decades(parts);
  dots(parts);
  limit(parts);
  names(parts);
}

const HALF = 1; // a column reaches half a step to both sides

function zones({ core, scene, box: { top, bottom, x }, last: { type, cell } }) {
  const zone = (kind, from, to) => {
    if (to <= from) return;
    const [x1, x2] = [x(from), x(to)];
    scene.append("rect").attr("class", `rmsn-zone is-${kind}`).attr("x", x1).attr("y", top)
      .attr("width", x2 - x1).attr("height", bottom - top);
    scene.append("path").attr("class", `rmsn-stripe is-${kind}`)
      .attr("d", core.stripes([x1, x2], [top, bottom]));
  };
  const [low, high] = [type.k[0] - HALF, type.k[1] + HALF];
  zone("none", x.domain()[0], low);
  zone("wrong", low, cell.holds[0] - HALF);
  zone("wrong", cell.holds[1] + HALF, high);
  zone("none", high, x.domain()[1]);
}

function scale({ d3, core, scene, box, last: { type: { u } } }) {
  const { left, right, top, roof, bottom } = box;
  const shares = [1e-4, 0.01, 0.1, 1].filter((v) => v > 20 * u && (v > 0.01 || u < 1e-3));
  const ticks = [
    ...[0, 1, 2, 3, 4].map((v) => [v, v ? `${v} u` : "0"]),
    ...shares.map((v) => [v / u, `${100 * v}%`]),
  ].map(([v, text]) => [height(v, u), text]);
  core.hairlines(d3, scene, {
    y: d3.scaleLinear([0, 1], [bottom, roof]), ticks: ticks.map(([v]) => v), left, right,
    format: (_, i) => ticks[i][1],
  });
  scene.append("text").attr("class", "rmsn-label is-small is-wrong").attr("text-anchor", "end")
    .attr("x", left - 8).attr("y", top + 16).text("∞, nan");
}

// The axis of sizes, in powers of ten.
function decades({ d3, core, scene, box: { bottom, x } }) {
  const ends = x.domain().map((k) => k * Math.log10(2));
  const tens = d3.ticks(...ends, 7).filter(Number.isInteger);
  core.bare(scene.append("g").attr("class", "rmsn-axis").attr("transform", `translate(0,${bottom})`)
    .call(d3.axisBottom(x).tickValues(tens.map((e) => e / Math.log10(2))).tickSize(5)
      .tickPadding(4).tickFormat((_, i) => (tens[i] ? `10${core.small(tens[i], 1)}` : "1"))));
}

// A dot for each row, the rows of one size side by side; a bar on the rail.
function dots({ core, scene, box, data, last }) {
  const { u } = last.type;
  const { rows: count } = last.type;
  const wide = (box.x(STEP) - box.x(0)) / count;
  const at = ({ k, v }, i) => `M${(box.x(k - HALF) + ((i % count) + 0.5) * wide).toFixed(1)},`
    + `${box.y(v, u).toFixed(1)}h0`;
  const path = (cls, found, test) => scene.append("path").attr("class", `rmsn-cloud is-${cls}`)
    .attr("d", found.map((p, i) => (test(p) ? at(p, i) : "")).join(""));
  if (last.convention !== "torch") {
    const other = { ...last, convention: "torch" };
    const found = points(data, other, cellOf(data, other));
    path("none", found, ({ v }) => v < Infinity);
  }
  const found = points(data, last, last.cell);
  path("rms", found, ({ v }) => v <= last.cell.bound);
  path("wrong", found, ({ v }) => v > last.cell.bound && v < Infinity);
  path("wrong is-bar", found, ({ v }) => v === Infinity);
}

function limit({ core, scene, box: { x, y }, last: { cell: { bound, holds }, type: { u } } }) {
  const at = y(bound, u);
  scene.append("path").attr("class", "rmsn-bound")
    .attr("d", `M${x(holds[0] - HALF)},${at}H${x(holds[1] + HALF)}`);
}

// What is lost below (or from) a size, in two lines or three.
function lostIn({ what, from }, core, isHigh, isNarrow) {
  const value = size(core, from);
  if (isHigh) return [`${what} overflows`, `from ${value}`];
  return isNarrow ? [`${what} loses`, "digits below", value]
    : [`${what} loses digits`, `below ${value}`];
}

// In words: what is lost in which zone, which line is the bound, which dots are whose.
function names({ core, labels, box, data, last }) {
  const { edges, type, cell, dtype } = last;
  const { left, right, roof, x, y, isNarrow } = box;
  const label = (cls, anchor, at, down, text) => {
    const words = labels.append("text").attr("class", `rmsn-label is-small rmsn-halo ${cls}`)
      .attr("text-anchor", anchor).attr("x", at).attr("y", down);
    core.typeset(words.node(), text);
  };
  const [low, high] = [type.k[0] > SIZES[0], type.k[1] < SIZES[1] - 40];
  let lowest = 0; // baseline of the words at the right
  const sides = [
    ["end", low ? x(type.k[0] - HALF) - 6 : left + 6, low, edges.low, type.least],
    ["start", high ? x(type.k[1] + HALF) + 6 : right - 4, high, edges.high, type.max],
  ];
  sides.forEach(([toward, at, isOutside, edge, end], i) => {
    const anchor = isOutside ? toward : ["start", "end"][i];
    const down = isOutside ? roof + 20 : y(3.4, type.u); // where no dots are
    const lines = edge ? lostIn(edge, core, i, isNarrow) : [];
    lines.forEach((line, j) => label("is-wrong", anchor, at, down + 16 * j, line));
    if (!isOutside) return;
    const [side, value] = [i ? "beyond" : "below", size(core, end)];
    const far = isNarrow ? [side, value] : [`${side} ${value}`];
    const from = down + 12 + 16 * Math.max(2, lines.length);
    [`no ${dtype}`, ...far].forEach((line, j) => label("", anchor, at, from + 16 * j, line));
    lowest = from + 16 * far.length;
  });
  const [anchor, at] = high ? sides[1] : ["middle", x(-30)];
  const bound = `bound ${core.number(cell.bound)} u`;
  const line = y(cell.bound, type.u);
  label("is-ink", anchor, at, high ? Math.max(line + 4, lowest + 24) : line - 7, bound);
  const { label: name } = data.conventions[last.convention];
  core.words(labels, 0, 30, [["is-rms", `● ${name}`],
    ...(last.convention === "torch" ? [] : [["is-none", "● torch"]])]).classed("is-small", true);
}
