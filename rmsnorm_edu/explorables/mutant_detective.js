// "Mutant detective": feed an unknown RMSNorm, look where it is wrong, name its fault.
const WIDTH = 8; // features, of the widest input
const ROWS = 3;

// --- pure: `node --test` runs it against vectors from mutant_detective.py

// An error in % as a cell shows it: blank for right, "nan" for what is no number.
export function shown(percent) {
  if (percent === null) return "nan";
  const size = Math.abs(percent);
  if (size === 0) return "";
  const text = size >= 999.5 ? ">999" : size >= 9.95 ? size.toFixed(0)
    : size >= 0.095 ? size.toFixed(1) : "<0.1";
  return percent < 0 && size < 999.5 && size >= 0.095 ? `−${text}` : text;
}

// How strong its colour is, from 0 to 1: 0.00001% is faint, 100% is full.
export function tone(percent) {
  if (percent === null) return 1;
  if (percent === 0) return 0;
  return Math.min(1, Math.max(0.15, (Math.log10(Math.abs(percent)) + 5) / 7));
}

// The state as the figure needs it; a link can hold anything.
export function answers(data, { case: index, fed, seen, guesses }) {
  const at = Math.min(data.cases.length - 1, Math.max(0, Math.round(index)));
  const input = Math.min(data.inputs.length - 1, Math.max(0, Math.round(fed)));
  const here = (all) => all.filter((one) => one.startsWith(`${at}/`));
  const tried = here(guesses).map((one) => +one.split("/")[1]);
  const told = (suspect) => data.sentences[data.suspects[suspect].says[input]];
  return {
    case: at, fed: input, input: data.inputs[input], tried, told,
    map: data.cases[at].maps[input], choices: data.cases[at].choices,
    isSolved: tried.includes(at),
    inputs: new Set([...here(seen), `${at}/0`, `${at}/${input}`]).size,
    solved: data.cases.filter((_, i) => guesses.includes(`${i}/${i}`)).length,
    guesses: guesses.length,
  };
}

const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// `guess` is the suspect named last, null where the reader has fed another input since.
export function finding(data, last, guess = null) {
  const { name, what, reported } = data.suspects[last.case];
  if (last.isSolved) {
    return `Yes, “${name}”: ${what} Reported: ${reported}. You needed `
      + `${count(last.inputs, "input")} and ${last.tried.length === 1 ? "one guess"
        : count(last.tried.length, "guess").replace("guesss", "guesses")}.`;
  }
  if (guess === null) return last.told(last.case);
  const wrong = data.suspects[guess];
  const differs = wrong.says.findIndex((text, i) => text !== data.suspects[last.case].says[i]);
  return last.told(guess) === last.told(last.case)
    ? `No. “${wrong.name}” looks the same here. “${data.inputs[differs].name}” would have told `
      + "the two apart."
    : `No. With “${wrong.name}” you would read here: ${last.told(guess)}`;
}

// Which cell the equation shows, in words; null where all is right.
export function worst(last, format) {
  if (!last.map.worst) return null;
  const [what, row, column, got, want] = last.map.worst;
  return {
    what, place: what === "dweight" ? `${column + 1}` : `${row + 1}, ${column + 1}`,
    got: got === null ? "nan" : format(got), want: format(want),
  };
}

// --- the page
const TITLE = "An error has a shape, and the shape names the fault.";
const HOW = "Feed the unknown RMSNorm, look where it is wrong, then name its fault out of six.";
const EQUATION = `<span><i data-slot="what"></i><sub data-slot="place"></sub> =
  <b class="is-wrong" data-slot="got"></b></span>
  <span class="rmsn-aside">right is <span data-slot="want"></span></span>`;

function render({ model, el, core }) {
  const data = model.get("data");
  const names = ["case", "fed", "seen", "guesses"];
  const now = () => answers(data, Object.fromEntries(names.map((key) => [key, model.get(key)])));
  let guess = null;
  const act = (values, named = null) => {
    guess = named;
    core.change(model, values);
    update(); // a name said twice changes nothing in the model
  };
  const parts = build({ el, core, data, hands: moves({ model, data, act, now }) });
  const update = () => parts.update(now(), guess);
  update();
  return core.onChange(model, names, update);
}

// What the buttons do.
function moves({ model, data, act, now }) {
  const mark = (name, one) => ({ [name]: [...new Set([...model.get(name), one])] });
  return {
    feed: (fed) => act({ fed, ...mark("seen", `${now().case}/${fed}`) }),
    name: (suspect) => act(mark("guesses", `${now().case}/${suspect}`), suspect),
    next: () => act({ case: (now().case + 1) % data.cases.length, fed: 0 }),
    reset: () => act({ case: 0, fed: 0, seen: [], guesses: [] }),
  };
}

// Everything, in reading order.
function build({ el, core, data, hands }) {
  const { node } = core;
  const inputs = group(core, "Feed it", data.inputs.map(({ name }, i) => [name, i]), hands.feed);
  const about = node("p", { class: "rmsn-key" });
  const maps = [heat(core, "Error of y, in % of the true value", ["y"]),
    heat(core, "Error of dx; last row: dweight", ["dx", "dweight"])];
  const equation = node("div", { class: "rmsn-equation", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const names = group(core, "Which fault is it?", Array(6).fill(["", 0]), hands.name);
  const score = node("p", { class: "rmsn-key" });
  el.append(node("div", { class: "rmsn" },
    node("p", { class: "rmsn-title" }, TITLE), node("p", { class: "rmsn-how" }, HOW),
    inputs.el, about, node("div", { class: "rmsn-duo" }, ...maps.map((map) => map.el)),
    node("div", { class: "rmsn-told" }, equation, said), names.el, score, ideas(core, hands)));
  return {
    update(last, guess) {
      inputs.buttons.forEach((b, i) => b.setAttribute("aria-pressed", i === last.fed));
      core.say(about, `${last.input.about} Blank is right.`);
      maps.forEach((map) => map.update(last));
      show(core, equation, fill, worst(last, core.number));
      core.say(said, finding(data, last, guess));
      name(core, data, names, last);
      core.say(score, `Mutant ${last.case + 1} of ${data.cases.length}. Found: ${last.solved}. `
        + `Guesses: ${last.guesses}.`);
    },
  };
}

const ideas = (core, hands) => core.tries([
  ["Is it ε? Feed tiny rows", () => hands.feed(4)],
  ["Is it the mean? Feed equal numbers", () => hands.feed(1)],
  ["Another mutant", hands.next],
], hands.reset);

// A named row of buttons, each of which has a value.
function group(core, label, pairs, act) {
  const buttons = pairs.map(([text, value]) => {
    const b = core.button(text, () => act(+b.dataset.value), "answer");
    b.dataset.value = value;
    return b;
  });
  const el = core.node("div", { class: "rmsn-guess", role: "group", "aria-label": label },
    core.node("p", { class: "rmsn-asked" }, label), ...buttons);
  return { el, buttons };
}

// The six names of a case: ✗ what it was not, ✓ what it is.
function name(core, data, { buttons }, { choices, tried, case: right, isSolved }) {
  buttons.forEach((b, i) => {
    const suspect = choices[i];
    const sign = !tried.includes(suspect) ? "" : suspect === right ? "✓ " : "✗ ";
    core.typeset(b, sign + data.suspects[suspect].name);
    b.setAttribute("aria-label", sign + data.suspects[suspect].name);
    b.dataset.value = suspect;
    b.disabled = isSolved || sign !== "";
  });
}

function show(core, equation, fill, cell) {
  equation.classList.toggle("is-silent", cell === null);
  fill(cell ?? { what: "y", place: "1, 1", got: "0", want: "0" });
  equation.setAttribute("aria-label", cell === null ? "no error"
    : `${cell.what} ${cell.place} is ${cell.got}, right is ${cell.want}`);
}

// A table of cells, drawn once: rows of the first result, and one row of the second, if any.
function heat(core, caption, results) {
  const { node } = core;
  const line = (head) => {
    const th = node("th", { scope: "row" }, head);
    const cells = Array.from({ length: WIDTH }, () => node("td"));
    return { th, cells, el: node("tr", {}, th, ...cells) };
  };
  const lines = Array.from({ length: ROWS }, () => ["row", line("")]);
  if (results[1]) lines.push(["dw", line("dw")]);
  const head = Array.from({ length: WIDTH }, (_, i) => node("th", { scope: "col" }, i + 1));
  const el = node("table", { class: "rmsn-heat" }, node("caption", {}, caption),
    node("thead", {}, node("tr", {}, node("th", { scope: "col" }, "row"), ...head)),
    node("tbody", {}, ...lines.map(([, { el: row }]) => row)));
  const update = ({ map, input: { rows, width } }) => lines.forEach(([kind, { th, cells }], i) => {
    const values = kind === "dw" ? map.dweight?.[0] : map[results[0]]?.[i];
    if (kind === "row") core.say(th, `${rows[i] + 1}`);
    cells.forEach((td, j) => paint(core, td, j < width ? values?.[j] ?? (values ? null : 0) : ""));
  });
  return { el, update };
}

// A cell; "" for a feature that the input does not have.
function paint(core, td, percent) {
  core.say(td, percent === "" ? "" : shown(percent));
  td.classList.toggle("is-none", percent === "");
  td.style.setProperty("--tone", percent === "" ? 0 : tone(percent));
}

export default { render };
