// The invariance table: choose a norm and a change, guess, drag; the outputs stay or move.
export const EXACT = 1e-12; // of the largest output: what rounding leaves
export const EPS = 0.1; // large, so that the eye sees what it does

// --- pure: `node --test` runs it against vectors from reference.py

const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
const times = (row, factor) => row.map((v) => v * factor);
const flipped = (m) => m[0].map((_, i) => m.map((row) => row[i]));
const largest = (m) => Math.max(...m.flat().map(Math.abs));
export const summed = ({ x, w }) => x.map((row) => w.map((weights) => dot(weights, row)));

// The rotation Q: outputs 1 and 2, 3 and 4, … turn by an angle in degrees.
export function turn(row, degrees) {
  const [c, s] = [Math.cos, Math.sin].map((f) => f((degrees * Math.PI) / 180));
  return row.map((v, i) => (i % 2 ? s * row[i - 1] + c * v : c * v - s * row[i + 1]));
}

// What each change does to the weights w and the examples x; `a` is δ, c or the angle.
const CHANGES = {
  weight_matrix_rescaling: (a, { w }) => ({ w: w.map((row) => times(row, a)) }),
  weight_matrix_recentering: (a, { w, gamma }) =>
    ({ w: w.map((row) => row.map((v, j) => v + a * gamma[j])) }),
  weight_vector_rescaling: (a, { w }) => // row i by sign(δ) |δ|^tᵢ, tᵢ from 0.5 to 1.5
    ({ w: w.map((row, i) =>
      times(row, Math.sign(a) * Math.abs(a) ** (0.5 + i / (w.length - 1)))) }),
  dataset_rescaling: (a, { x }) => ({ x: x.map((row) => times(row, a)) }),
  dataset_recentering: (a, { x }) => ({ x: x.map((row) => row.map((v) => v + a)) }),
  single_case_rescaling: (a, { x: [first, ...others] }) => ({ x: [times(first, a), ...others] }),
  rotation: (a, { w }) => ({ w: flipped(flipped(w).map((column) => turn(column, a))) }),
};

// The norms of the summed inputs W x, before the gain.
const NORMS = {
  batch_norm: (core, e, eps) => flipped(flipped(summed(e)).map((f) => core.layerNorm(f, eps))),
  weight_norm: (core, { x, w }) => // which has no ε
    summed({ x, w: w.map((row) => times(row, 1 / Math.sqrt(dot(row, row)))) }),
  layer_norm: (core, e, eps) => summed(e).map((row) => core.layerNorm(row, eps)),
  rms_norm: (core, e, eps) => summed(e).map((row) => core.rmsNorm(row, eps)),
  partial_rms_norm: (core, e, eps) =>
    summed(e).map((row) => times(row, 1 / core.rms(row.slice(0, e.k), eps))),
};

// The outputs before (for a rotation, turned) and after, their largest difference over the
// largest output, and the verdict.
export function measure(core, { method, transformation, amount, eps }, example) {
  const isTurn = transformation === "rotation";
  const gain = isTurn ? example.gain.map(() => 1) : example.gain;
  const outputs = (e) => NORMS[method](core, e, eps).map((row) => row.map((v, i) => v * gain[i]));
  const changed = { ...example, ...CHANGES[transformation](amount, example) };
  const before = outputs(example).map((row) => (isTurn ? turn(row, amount) : row));
  const after = outputs(changed);
  const pairs = after.flatMap((row, i) => row.map((v, j) => [v, before[i][j]]));
  const apart = (f) => Math.max(...pairs.map(([a, b]) => Math.abs(f(a) - f(b)))) / largest(before);
  const maxChange = apart((v) => v);
  const verdict = judge(maxChange, isTurn ? maxChange : apart(Math.abs));
  return { input: summed(example), moved: summed(changed), before, after, maxChange, verdict };
}

function judge(maxChange, ofSizes) {
  if (!Number.isFinite(maxChange)) return "nothing"; // 0 / 0
  if (maxChange <= EXACT) return "stays";
  return ofSizes <= EXACT ? "flips" : "moves";
}

// What the reader has seen at this amount: the cell, or its answer to a negative scale.
export function seen({ method, transformation, amount, eps }, { start, probe }) {
  const isFar = Math.abs(amount - start) >= Math.abs(probe - start) / 5;
  if (eps > 0 || !isFar || (start === 1 && amount === 0)) return null;
  return `${method}/${transformation}${start === 1 && amount < 0 ? "/negative" : ""}`;
}

// A cell's mark and the word for it.
export function mark(core, { method, transformation, eps, verified }, { example, probe }) {
  const name = `${method}/${transformation}`;
  const at = (amount, e) =>
    measure(core, { method, transformation, amount, eps: e }, example).verdict;
  const hasFlip = verified.includes(`${name}/negative`) && at(-probe, 0) === "flips";
  if (!verified.includes(name)) return hasFlip ? ["±", "flips below 0"] : ["?", "not yet tried"];
  if (at(probe, 0) !== "stays") return ["✗", "moves"];
  if (at(probe, eps) !== "stays") return ["≈", "no longer exact with ε"];
  return hasFlip ? ["✓±", "stays, flips below 0"] : ["✓", "stays"];
}

const RESULT = {
  stays: "The outputs stay; what is left is rounding.",
  flips: "Below 0 they turn over and keep their size.",
  moves: "The outputs move.",
  nothing: "Scaled by 0, nothing is left to divide: 0 / 0.",
};

export function finding(now) {
  const { method, isStart, isSeen, guess, eps, ideal, holds, law } = now;
  const ask = isSeen ? "Drag the slider to see it again." : "Guess, then drag the slider.";
  if (isStart) return `${method.about} ${ask}`.trim();
  const isBroken = eps > 0 && ideal !== "moves" && now.verdict === "moves";
  if (isBroken) return `ε = ${eps} is not scaled, so it does not cancel. The outputs move.`;
  const right = { stays: "stay", moves: "move" }[now.verdict];
  const judged = guess && right ? (guess === right ? "You were right. " : "Not so. ") : "";
  const isLawful = isSeen && holds === (now.verdict !== "moves"); // BatchNorm follows Q = −1
  return `${judged}${RESULT[now.verdict]} ${isLawful ? law.says : ""}`.trim();
}

// --- the page
const WATCHED = ["method", "transformation", "amount", "eps", "verified"];
const EQUATION = `<span aria-hidden="true">max |<i>y</i>′ − <i data-slot="before"></i>| ∕
  max |<i>y</i>| = <b data-slot="change"></b></span>`;
const SIGNS = ["✓ stays", "✗ moves", "± flips below 0", "≈ broken by ε"];

// The state, held to what the table has (a link can hold anything).
function read(core, model) {
  const { methods, changes } = model.get("data");
  const pick = (list, key) => list.find((entry) => entry.key === key) ?? list[0];
  const method = pick(methods, model.get("method"));
  const change = pick(changes, model.get("transformation"));
  return {
    method, change, verified: model.get("verified"), eps: model.get("eps") > 0 ? EPS : 0,
    amount: core.clamp(model.get("amount"), change.range),
  };
}

const plain = ({ method: m, change: c, ...s }) => ({ ...s, method: m.key, transformation: c.key });

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const [begin, guesses] = [read(core, model), new Map()];
  const set = (values) => core.change(model, values);
  const hands = {
    set,
    choose(method, change) {
      const now = read(core, model); // the amount goes along a row, into cells already tried
      const keeps = now.change === change && now.verified.includes(`${method.key}/${change.key}`);
      const amount = keeps ? now.amount : change.start;
      set({ method: method.key, transformation: change.key, amount });
    },
    guess(word) {
      const { method, change } = read(core, model);
      guesses.set(`${method.key}/${change.key}`, word);
      set({ amount: change.probe, eps: 0 });
    },
    show(state) { // what ε breaks counts as tried: the cell says so
      const name = `${state.method}/${state.transformation}`;
      const { verified } = read(core, model);
      set({ ...state, verified: [...new Set([...verified, ...(state.eps > 0 ? [name] : [])])] });
    },
    reset() {
      guesses.clear();
      set(plain(begin));
    },
  };
  const parts = build({ el, d3, core, data, hands });
  let picture = null;
  function update() {
    const state = read(core, model);
    const fact = seen(plain(state), state.change);
    if (fact && !state.verified.includes(fact)) {
      return set({ verified: [...state.verified, fact] }); // which calls update again
    }
    const name = `${state.method.key}/${state.change.key}`;
    const at = (change) => measure(core, { ...plain(state), ...change }, data.example);
    const last = {
      ...at({}), state, guess: guesses.get(name),
      law: data.laws[state.method.key][state.change.key],
      ideal: at({ eps: 0 }).verdict,
      holds: at({ eps: 0, amount: state.change.probe }).verdict === "stays",
      isSeen: state.verified.some((v) => v.startsWith(name)),
      isStart: state.amount === state.change.start,
    };
    picture?.update(last);
    parts.update(last);
  }
  const stops = [
    core.onChange(model, WATCHED, update),
    core.onWidth(parts.picture, (width) => {
      const isNarrow = parts.picture.parentElement.clientWidth < 600; // one column
      picture = core.panels({ d3, core, width, isNarrow, example: data.example });
      parts.picture.replaceChildren(picture.el);
      update();
    }), parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}

// Everything around the picture, in reading order.
function build({ el, d3, core, data, hands }) {
  const picture = core.node("div", { class: "rmsn-picture" });
  const [equation, law] = ["rmsn-equation", "rmsn-aside rmsn-law"].map((cls) =>
    core.node("div", { class: cls }));
  const fill = core.slots(equation, EQUATION);
  equation.setAttribute("role", "math");
  const said = core.node("output", { class: "rmsn-finding", "aria-live": "polite" });
  const values = core.hiddenTable("Outputs of the four examples, before and after");
  const grid = table({ core, data, hands });
  const guess = guesses({ core, hands });
  const controls = inputs({ d3, core, data, hands });
  const go = (transformation, amount, eps = 0) => () =>
    hands.show({ method: "rms_norm", transformation, amount, eps });
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" },
      "A norm is blind to some changes and feels the others."),
    core.node("p", { class: "rmsn-how" },
      "Choose a cell, guess, then drag the slider: the law appears, and the cell fills in."),
    core.node("div", { class: "rmsn-duo" },
      core.node("div", {}, grid.el, guess.el, grid.key), picture),
    controls.el,
    core.node("div", { class: "rmsn-told" }, core.node("div", {}, equation, law), said),
    core.tries([
      ["δ = −2: a mirror", go("weight_matrix_rescaling", -2)],
      ["Shift W: RMSNorm moves", go("weight_matrix_recentering", 2)],
      ["ε = 0.1, δ = 0.1: no longer exact", go("weight_matrix_rescaling", 0.1, EPS)],
    ], hands.reset), values.el));
  return {
    picture,
    stop: values.stop,
    update(last) {
      [grid, guess, controls].forEach((part) => part.update(last));
      const before = last.state.change.key === "rotation" ? "Qy" : "y";
      const change = core.number(last.maxChange);
      fill({ before, change: last.isStart ? "?" : change });
      equation.setAttribute("aria-label", `max |y′ − ${before}| / max |y| = ${change}`);
      const shown = last.isSeen ? last.law.html.replace(/\u2003(.*)/, " <span>$1</span>") : "";
      if (law.dataset.shown !== shown) law.innerHTML = law.dataset.shown = shown;
      core.say(said, finding({ ...last, ...last.state }));
      values.set(() => last.after.flatMap((row, i) => [["before", last.before[i]], ["after", row]]
        .map(([word, y]) => [`example ${i + 1} ${word}`, ...y.map(d3.format(".2f"))])));
    },
  };
}

// The table is the control; a cell fills in when the reader has tried it.
function table({ core, data: { methods, changes, example }, hands }) {
  const grid = core.grid({
    core,
    label: "Changes and norms", signs: SIGNS, rows: changes.map((change) => change.name),
    columns: methods.map((m) => [`is-${m.colour}`, m.short, m.about || m.name]),
    onChoose: (i, j) => hands.choose(methods[j], changes[i]),
    onAct: (i) => hands.set({ amount: changes[i].probe }),
  });
  const show = (state) => changes.forEach((change, i) => methods.forEach((method, j) => {
    const [sign, word] = mark(core, plain({ ...state, method, change }), { ...change, example });
    grid.show(i, j, sign, `${method.name}, ${change.name}: ${word}`);
  }));
  let shown = "";
  const update = ({ state }) => {
    const facts = [state.eps, ...state.verified].join();
    if (facts !== shown) show(state);
    shown = facts;
    grid.choose(changes.indexOf(state.change), methods.indexOf(state.method));
    const done = state.verified.filter((name) => !name.endsWith("/negative")).length;
    core.say(grid.corner, `tried ${done} of ${methods.length * changes.length}`);
    grid.key.classList.toggle("is-silent", state.verified.length === 0);
  };
  return { ...grid, update };
}

// The question under the table, and its two answers.
function guesses({ core, hands }) {
  const words = ["stay", "move"];
  const asked = core.node("p", { class: "rmsn-asked" });
  const buttons = words.map((w) => core.button(w, () => hands.guess(w), "answer"));
  return {
    el: core.node("div", { class: "rmsn-guess", role: "group", "aria-label": "Your guess" },
      asked, core.node("span", {}, "Guess: the outputs"), ...buttons),
    update({ state: { method, change }, guess }) {
      core.say(asked, `${method.name}, ${change.does}:`);
      buttons.forEach((b, i) => b.setAttribute("aria-pressed", guess === words[i]));
    },
  };
}

// One slider for each kind of amount, of which one is shown; ε.
function inputs({ d3, core, data, hands }) {
  const kinds = [...new Map(data.changes.map((c) => [c.symbol, c])).values()];
  const sliders = new Map(kinds.map((kind) => [kind.symbol, core.slider({
    ...kind, label: kind.symbol, marks: [...new Set([0, kind.start])],
    format: d3.format(kind.step < 1 ? ".1f" : "d"), onInput: (amount) => hands.set({ amount }),
  })]));
  const eps = core.node("input", { type: "checkbox" });
  eps.addEventListener("change", () => hands.set({ eps: eps.checked ? EPS : 0 }));
  const el = core.node("div", { class: "rmsn-sliders" },
    core.node("div", {}, ...[...sliders.values()].map((s) => s.el)),
    core.node("label", { class: "rmsn-check" }, eps, `ε = ${EPS} in the root`));
  return {
    el,
    update({ state }) {
      for (const [symbol, { el: box }] of sliders) box.hidden = symbol !== state.change.symbol;
      sliders.get(state.change.symbol).set(state.amount);
      eps.checked = state.eps > 0;
    },
  };
}

export default { render };
