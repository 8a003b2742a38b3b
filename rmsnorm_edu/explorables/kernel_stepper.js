// "Kernel stepper": a recorded kernel, its source, memory and registers, one step at a time.

const NAMES = ["scene", "program", "moment"];
const TITLE = "Every program runs the same lines. Only its number tells it where to read.";

export const OPENS = -1; // the moment at which a program is shown first

// Which that is: the first masked load from an array of several rows, where the program's number
// tells it which; else its first load, else its first step.
export function opening(core, scene, program, all) {
  const loads = all.map(([index], moment) => ({ ...core.unpack(scene, program, index), moment }))
    .filter(({ kind }) => kind === "load");
  const tells = ({ array, mask }) => scene.arrays[array].shape[0] > 1 && mask.includes(false);
  return (loads.find(tells) ?? loads[0] ?? { moment: 0 }).moment;
}

// The state, held to what the recording has (a link can hold anything).
export function read(core, model) {
  const scenes = model.get("scenes");
  const at = core.clamp(Math.round(model.get("scene")), [0, scenes.length - 1]);
  const scene = scenes[at];
  const program = core.clamp(Math.round(model.get("program")), [0, scene.programs.length - 1]);
  const all = core.moments(scene, program);
  const asked = Math.round(model.get("moment"));
  const moment = asked < 0 ? opening(core, scene, program, all)
    : core.clamp(asked, [0, all.length - 1]);
  return { at, scene, program, all, moment };
}

// One moment on or back, over the ends of programs; the same state at the ends of the recording.
export function beside(core, { scene, program, all, moment }, step) {
  const next = moment + step;
  if (next >= 0 && next < all.length) return { program, moment: next };
  const other = program + step;
  if (other < 0 || other >= scene.programs.length) return { program, moment };
  return { program: other, moment: step > 0 ? 0 : core.moments(scene, other).length - 1 };
}

// The moments that the buttons go to: what to look for, the program, the moment.
export function sights(core, scene) {
  const all = scene.programs.flatMap((_, program) => core.moments(scene, program)
    .map(([index, fold], moment) => (
      { program, moment, index, fold, step: core.unpack(scene, program, index) })));
  const find = (text, isIt, list = all) => {
    const found = list.find(isIt);
    return found ? [[text, found.program, found.moment]] : [];
  };
  const load = ({ step }) => step.kind === "load" && step.mask.some(Boolean);
  const end = ({ array }) => core.size(scene.arrays[array].shape);
  return [
    ...find("Masked: past the end", (m) => load(m)
      && m.step.offsets.some((o, i) => !m.step.mask[i] && o >= end(m.step))),
    ...find("Lanes fold into a sum", ({ step, fold }) => step.kind === "reduce" && fold === 1),
    ...find("The same bytes again",
      (m) => load(m) && core.readBefore(scene, m.program, m.index) !== ""),
  ];
}

function render({ model, el, core }) {
  const parts = build({ model, el, core });
  let shown = null;
  const update = () => {
    const state = read(core, model);
    if (shown !== state.scene) parts.stage((shown = state.scene));
    parts.update(state);
  };
  const stop = core.onChange(model, [...NAMES, "scenes"], update);
  update();
  return () => {
    stop();
    parts.stop();
  };
}

function build({ model, el, core }) {
  const { node } = core;
  const start = Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
  const set = (values) => core.change(model, values);
  const stage = node("div", { class: "rmsn-picture rmsn-ks" });
  const said = node("output", { class: "rmsn-finding rmsn-ks-said", "aria-live": "polite" });
  const controls = node("div", { class: "rmsn-ks-controls" });
  const table = core.hiddenTable("Memory and registers after this step");
  el.append(node("div", { class: "rmsn" },
    node("p", { class: "rmsn-title" }, TITLE), ...chooser({ core, model, set }), stage,
    said, controls, table.el));
  let parts;
  return {
    stop: table.stop,
    stage(scene) {
      parts = [picture(core, stage, scene), steer({ core, model, controls, scene, set, start })];
    },
    update(state) {
      const now = core.moment(state.scene, state.program, state.all[state.moment]);
      parts.forEach((part) => part(state, now));
      core.say(said, now.finding);
      table.set(() => now.table);
    },
  };
}

// Which recording, where there are several.
function chooser({ core, model, set }) {
  const scenes = model.get("scenes");
  const options = scenes.map(({ name }, i) => [i, name.replaceAll("_", " ")]);
  if (scenes.length < 2) return [];
  const found = core.choice("Kernel", options,
    (scene) => set({ scene, program: 0, moment: OPENS }));
  const show = () => found.set(read(core, model).at);
  core.onChange(model, ["scene"], show);
  show();
  return [found.el];
}

// Program, step, Back and Next, what to look at.
function steer({ core, model, controls, scene, set, start }) {
  const { node } = core;
  const names = scene.programs.map(({ kernel, id }, i) => [i,
    scene.kernels.length > 1 ? `${scene.kernels[kernel].name} ${id}` : String(id)]);
  const programs = core.choice("Program", names, (program) => set({ program, moment: OPENS }));
  let last = 0; // of this program; the slider knows that of the longest
  const longest = Math.max(...scene.programs.map((_, i) => core.moments(scene, i).length)) - 1;
  const steps = core.slider({
    label: "Step", range: [0, longest], step: 1, format: (v) => `${v + 1} of ${last + 1}`,
    onInput: (moment) => set({ moment: core.clamp(moment, [0, last]) }),
  });
  const input = steps.el.querySelector("input");
  const go = (by) => () => set(beside(core, read(core, model), by));
  const [back, next] = [core.button("Back", go(-1)), core.button("Next", go(1))];
  const ideas = sights(core, scene).map(([text, program, moment]) =>
    [text, () => set({ program, moment })]);
  controls.replaceChildren(
    node("div", { class: "rmsn-ks-steer" }, back, next, steps.el), programs.el,
    core.tries(ideas, () => set(start)));
  return (state) => {
    last = state.all.length - 1;
    core.attr(input, "max", last);
    steps.set(state.moment);
    programs.set(state.program);
    const isAt = (by) => {
      const { program, moment } = beside(core, state, by);
      return program === state.program && moment === state.moment;
    };
    core.attr(back, "aria-disabled", isAt(-1));
    core.attr(next, "aria-disabled", isAt(1));
  };
}

// --- the picture: source and registers, memory
function picture(core, stage, scene) {
  const [code, lanes, bank] = ["rmsn-ks-code", "rmsn-ks-lanes", "rmsn-ks-bank"]
    .map((cls) => core.node("div", { class: cls, "aria-hidden": "true" }));
  stage.replaceChildren(core.node("div", {}, code, lanes), bank);
  const parts = [
    source(core, code, scene), registers(core, lanes, scene), arrays(core, bank, scene),
  ];
  return (state, now) => parts.forEach((part) => part(state, now));
}

function source(core, code, scene) {
  let lines = [];
  let kernel = null;
  const write = (number) => {
    kernel = number;
    lines = scene.kernels[number].lines.map((text) => {
      const indent = text.length - text.trimStart().length;
      return core.node("div", { style: `--in: ${indent + 2}ch` }, text.trimStart());
    });
    code.replaceChildren(...lines);
  };
  return ({ program }, { line }) => {
    if (kernel !== scene.programs[program].kernel) write(scene.programs[program].kernel);
    lines.forEach((el, i) => core.attr(el, "class", i === line ? "is-now" : ""));
    const now = lines[line];
    requestAnimationFrame(() => { // the page is laid out once a frame
      const { offsetTop, offsetHeight } = now;
      const middle = offsetTop + offsetHeight / 2 - code.clientHeight / 2;
      code.scrollTop = 18 * Math.round(middle / 18); // whole lines
    });
  };
}

const cellsOf = (core, n) =>
  Array.from({ length: n }, () => core.node("span", { class: "rmsn-ks-cell" }));

function fill(core, cells, values, states) {
  cells.forEach((cell, i) => {
    core.say(cell, core.show(values?.[i] ?? null));
    core.attr(cell, "data-state", states?.[i] ?? "");
  });
}

// A row of lanes under a name; a tile is several rows, a column lies down.
function tile(core, shape) {
  const cells = cellsOf(core, core.size(shape));
  const columns = shape.at(-1) === 1 ? cells.length : shape.at(-1);
  const name = core.node("b");
  const el = core.node("div", { class: "rmsn-ks-row" }, name,
    core.node("div", { class: "rmsn-ks-tile", style: `--columns: ${columns}` }, ...cells));
  return { el, name, cells };
}

function registers(core, box, scene) {
  const now = core.node("div", { class: "rmsn-ks-now", style: `--rows: ${core.tallest(scene)}` });
  const list = core.node("div");
  const formula = core.node("div", { class: "rmsn-ks-formula" });
  box.replaceChildren(core.node("i", {}, "Registers of this program"), list, formula, now);
  let shown = null;
  let rows = [];
  return ({ program }, { variables, lanes, formula: text }) => {
    core.say(formula, text);
    const names = variables.map(({ name, shape }) => `${name} ${shape}`).join();
    if (shown !== names) {
      shown = names;
      rows = variables.map(({ shape }) => tile(core, shape));
      list.replaceChildren(...rows.map(({ el }) => el));
    }
    variables.forEach((variable, i) => {
      core.say(rows[i].name, variable.name);
      core.attr(rows[i].el, "data-now", variable.isNow);
      core.attr(rows[i].el, "data-near", variable.isNear);
      fill(core, rows[i].cells, variable.values, variable.values && variable.states);
    });
    now.replaceChildren(...lanes.map(({ label, shape, values, states }) => {
      const row = tile(core, shape);
      core.say(row.name, label);
      fill(core, row.cells, values, states);
      return row.el;
    }));
  };
}

function arrays(core, bank, scene) {
  const parts = scene.arrays.map(({ name, shape, dtype }) => {
    const title = core.node("span");
    const cells = cellsOf(core, shape[0] * shape[1]);
    const rows = Array.from({ length: shape[0] }, (_, row) => [
      core.node("em", {}, row * shape[1]), ...cells.slice(row * shape[1], (row + 1) * shape[1])]);
    const el = core.node("div", {}, core.node("i", {}, core.node("b", {}, name),
      ` ${shape.filter((n, i) => i || n > 1).join(" × ")} ${dtype}`, title),
      core.node("div", { class: "rmsn-ks-tile", style: `--columns: ${shape[1]}` }, ...rows.flat()));
    return { el, title, cells };
  });
  bank.replaceChildren(core.node("i", {}, "Memory; before a row, its first offset"),
    ...parts.map(({ el }) => el), key(core));
  const tallest = Math.max(...scene.arrays.map(({ shape }) => shape[0]));
  bank.style.setProperty("--rows", tallest);
  return (_, { memory, touched }) => memory.forEach(({ values, states, read: got, written }, i) => {
    core.attr(parts[i].el, "data-near", i === touched);
    const bytes = [got && `${got} B read`, written && `${written} B written`].filter(Boolean);
    core.say(parts[i].title, bytes.map((text) => `, ${text}`).join(""));
    fill(core, parts[i].cells, values, states);
  });
}

// What the looks of a cell mean.
const key = (core) => core.node("p", { class: "rmsn-ks-key" }, ...[["load", "read now"],
  ["store", "written now"], ["was", "touched before"], ["masked", "masked"]].map(([state, text]) =>
  core.node("span", {}, core.node("span", { class: "rmsn-ks-cell", "data-state": state }, "\u00a0"),
    text)));

export default { render };
