// "Where the bytes go": for each rung of the processor's ladder the arrays that it moves, and time.
const TITLE = "Every rung computes the same. What it moves is not the same.";
const EQUATION = `<span>counted</span><span>= <span data-slot="count"></span> ×
    <span data-slot="unit"></span> = <b data-slot="bytes"></b></span>
  <span></span><span>= <span data-slot="copies"></span> copies =
    <span data-slot="counted"></span></span>
  <span>recorded</span><span>= <b class="is-rms" data-slot="ms"></b> =
    <b class="is-rms" data-slot="taken"></b> copies</span>`;
const OUTPUTS = [["touched", "written before"], ["fresh", "fresh memory"]];
const ROW = 30;

// The state, held to what is recorded (a link can hold anything).
function read(core, model) {
  const { shapes } = model.get("data");
  const one = (name, known) => (known.includes(model.get(name)) ? model.get(name) : known[0]);
  const at = shapes.findIndex((shape) => shape.join("x") === model.get("shape"));
  return {
    rung: one("rung", core.RUNGS), output: one("output", ["touched", "fresh"]),
    at: at < 0 ? shapes.length - 1 : at,
  };
}

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const choose = (rung) => core.change(model, { rung });
  return core.live({
    core, model, names: ["rung", "shape", "output"], parts: build({ model, el, core, data }),
    answer: () => core.answers(data, read(core, model)),
    draw: (width) => draw({ d3, core, width, choose }),
  });
}

const ideas = (set, shapes) => [
  ["Blocks: the cache does the rest", { rung: "blocked", output: "touched" }],
  ["Streamed: written past the cache", { rung: "streamed", output: "touched" }],
  ["Fresh memory", { rung: "copy", output: "fresh", shape: shapes.at(-1).join("x") }],
].map(([text, state]) => [text, () => set(state)]);

// Everything around the picture, in reading order.
function build({ model, el, core, data }) {
  const start = { rung: model.get("rung"), shape: model.get("shape"), output: model.get("output") };
  const set = (values) => core.change(model, values);
  const picture = core.node("div", { class: "rmsn-picture" });
  const equation = core.node("div", { class: "rmsn-equation rmsn-ladder", role: "math" });
  const fill = core.slots(equation, EQUATION);
  const said = core.node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const chosen = {
    rung: core.choice("Rung", core.RUNGS.map((name) => [name, name]), (rung) => set({ rung })),
    shape: core.choice("Shape", data.shapes.map((shape) => [shape.join("x"), shape.join(" × ")]),
      (shape) => set({ shape })),
    output: core.choice("Output", OUTPUTS, (output) => set({ output })),
  };
  const source = core.node("p", { class: "rmsn-source" }, `Recorded: ${data.caption}`);
  const table = core.hiddenTable("Passes and recorded time of each rung");
  el.append(core.node("div", { class: "rmsn" },
    core.node("p", { class: "rmsn-title" }, TITLE),
    picture,
    core.node("div", { class: "rmsn-told" }, equation, said),
    ...Object.values(chosen).map((c) => c.el),
    core.tries(ideas(set, data.shapes), () => set(start)),
    source, table.el));
  return {
    picture,
    stop: table.stop,
    update(last) {
      chosen.rung.set(last.rung);
      chosen.shape.set(last.shape.join("x"));
      chosen.output.set(last.output);
      tell(core, { equation, fill }, last);
      core.say(said, core.finding(last));
      table.set(() => rowsOf(core, last));
    },
  };
}

const milli = (ms) => (ms >= 1000 ? `${(ms / 1000).toPrecision(3)}\u00a0s`
  : `${ms.toPrecision(3)}\u00a0ms`);
const mega = (bytes) => `${(bytes / 1e6).toPrecision(3).replace(/\.0+$/, "")}\u00a0MB`;
const size = (bytes) => (bytes < 1e9 ? mega(bytes) : `${(bytes / 1e9).toPrecision(3)}\u00a0GB`);

function tell(core, { equation, fill }, { chosen, unit, recorded, isFresh }) {
  const texts = {
    count: chosen.count, unit: mega(unit), bytes: size(chosen.count * unit),
    copies: core.times(chosen.copies), counted: milli(chosen.counted), ms: milli(recorded.ms),
    taken: core.times(recorded.copies),
  };
  fill(texts);
  equation.setAttribute("aria-label", `Counted: ${texts.count} passes of ${texts.unit} are `
    + `${texts.bytes}, as much as ${texts.copies} copies, which take ${texts.counted}. Recorded, `
    + `into ${isFresh ? "fresh memory" : "memory that was written before"}: ${texts.ms}, `
    + `${texts.taken} copies, ${recorded.faults} page faults.`);
}

function rowsOf(core, { bars, steps, rung }) {
  const taken = (entry) => (entry ? `${milli(entry.ms)}, ${entry.faults} page faults` : "not recorded");
  return [["rung", "passes over the memory", "counted time", "recorded", "into fresh memory"],
    ...bars.map((bar) => [bar.name, bar.count, milli(bar.counted), taken(bar.touched),
      taken(bar.fresh)]),
    ...steps.map(([name, streams]) => [`${rung}: ${name}`, streams.map(([array, way, place]) =>
      `${way} ${array} (${place})`).join(", ")])];
}

// --- the picture: above what streams in the chosen rung, below all rungs on one axis of time
function draw({ d3, core, width, choose }) {
  const box = layout(width);
  const svg = core.picture(d3, width, box.height,
    "Arrays that stream between memory, cache and registers, and the time that they take");
  const { isNarrow } = box;
  const dashed = [["", "dashed: a line is read before it is written"]];
  core.words(svg, 0, 12, [["", "An arrow is a pass: an array of x’s size"],
    ...(isNarrow ? [] : dashed)]);
  if (isNarrow) core.words(svg, 0, 30, dashed);
  const parts = [core.flow({ core, svg, box }), core.faults({ core, svg, box }),
    bars({ d3, core, svg, box, choose })];
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

function layout(width) {
  const isNarrow = width < 420;
  const top = isNarrow ? 44 : 26;
  const faultsAt = top + 158 + (isNarrow ? 62 : 46);
  const bars = faultsAt + 48;
  return { left: 2, right: width - 2, top, isNarrow, faultsAt, bars, height: bars + 7 * ROW + 62 };
}

function bars({ d3, core, svg, box, choose }) {
  const { right, bars: top, isNarrow } = box;
  const [left, end] = [70, right - 54];
  const x = d3.scaleLinear().range([left, end]).clamp(true);
  core.words(svg, 0, top, isNarrow
    ? [["", "counted"], ["is-ink", "◆ recorded"], ["", "◇ fresh"]]
    : [["", "Bars: counted bytes at the speed of the copy"], ["is-ink", "◆ recorded"],
      ["", "◇ into fresh memory"]]);
  core.words(svg, right, top, [["", "copies"]]).attr("text-anchor", "end");
  const rows = svg.append("g").attr("aria-hidden", "true").selectAll("g")
    .data(core.RUNGS).join("g").attr("transform", (_, i) => `translate(0,${top + 10 + i * ROW})`);
  const [grounds, names, taken] = ["rect", "text", "text"].map((tag) => rows.append(tag));
  grounds.attr("x", 0).attr("width", right).attr("height", ROW - 2).attr("rx", 5);
  names.attr("x", 6).attr("y", ROW / 2 + 3.5).text((name) => name);
  taken.attr("x", right - 6).attr("y", ROW / 2 + 3.5).attr("text-anchor", "end");
  const [boxes, marks] = [0, 1].map(() => rows.append("g"));
  rows.append("rect").attr("class", "rmsn-hit").attr("width", right).attr("height", ROW - 2)
    .style("cursor", "pointer").on("click", (_, name) => choose(name));
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${top + 14 + 7 * ROW})`);
  core.words(svg, end, top + 7 * ROW + 52, [["", "milliseconds"]]).attr("text-anchor", "end");
  return (last) => {
    x.domain([0, 1.04 * core.longest(last)]);
    const bar = (name) => last.bars.find((found) => found.name === name);
    const isOwn = (name) => (name === last.rung ? " is-own" : "");
    core.put(grounds, { "class": (name) => `rmsn-row${isOwn(name)}` });
    core.put(names, { "class": (name) => `rmsn-label is-small rmsn-rung${isOwn(name)}` });
    core.put(taken, { "class": (name) => `rmsn-label is-small rmsn-rung${isOwn(name)}` });
    taken.each(function write(name) {
      core.say(this, core.times(bar(name).touched.copies));
    });
    boxes.each(function fill(name) {
      const { streams, count, counted } = bar(name);
      const wide = (x(counted) - left) / count;
      const parts = streams.map(([array, way], i) => ({ array, way, from: left + i * wide }));
      core.put(d3.select(this).selectAll("rect").data(parts).join("rect"), {
        x: ({ from }) => from, y: () => 5, height: () => ROW - 12,
        width: () => Math.max(wide - 1, 0.5),
        "class": ({ array, way }) => `rmsn-stream ${core.colourOf(array)} is-${way}`,
      });
    });
    marks.each(function mark(name) {
      const found = [["touched", "is-full"], ["fresh", ""]]
        .map(([output, cls]) => [bar(name)[output], cls]).filter(([entry]) => entry);
      core.put(d3.select(this).selectAll("path").data(found).join("path"), {
        d: ([entry]) => diamond(x(entry.ms), entry.ms > x.domain()[1]),
        "class": ([, cls]) => `rmsn-taken-mark ${cls}`,
      });
    });
    axis.call(d3.axisBottom(x).ticks(isNarrow ? 4 : 7).tickSize(5).tickPadding(4));
    core.bare(axis);
  };
}

// A diamond at x; beyond the axis an arrow that points out of it.
const diamond = (x, isBeyond) => (isBeyond ? `M${x - 4},${ROW / 2 - 8}l9,7l-9,7Z`
  : `M${x},${ROW / 2 - 8}l7,7l-7,7l-7,-7Z`);

export default { render };
