// "The cell": a GRU or an LSTM with its norms as switches, and the spread of what its gates get.
const [GAINS, NAMES] = [[0.5, 4], ["cell", "norm", "places", "gain", "step"]];

// --- the page
const TITLE = "With a norm on both sides of the sum, few gates saturate.";
const HOW = "Tap a norm to switch it. Drag the line to read a step.";
const KEY = "Bands: the middle 50% and 90% of six sequences × 24 units. Saturated: a gate within 5% "
  + "of 0 or 1, a tanh beyond ±0.9.";
// {x} is a number, [x] stands in brackets where it is negative, :2 is what norm it passed last.
const LINES = {
  gru: ["reset <i>r</i>", "σ({A:0} + [Q:2]) = {r}", "keep <i>u</i>", "σ({Au:0} + [Qu:2]) = {u}",
    "candidate <i>c</i>", "tanh({r} · [R:3] + [E:1]) = {c}",
    "new <i>h</i>", "{u} · [before] + {v} · [c] = <b>{h}</b>"],
  lstm: ["gates <i>i</i>, <i>f</i>, <i>o</i>", "{i}, {f}, {o}", "candidate <i>g</i>",
    "tanh({z}) = {g}", "new <i>c</i>", "{f} · [kept] + {i} · [g] = <b>{c}</b>",
    "new <i>h</i>", "{o} · tanh({m:2}) = <b>{h}</b>"],
};
const html = (cell) => `<div class="rmsn-lines">${LINES[cell].map((text) =>
  `<span>${text.replace(/([{[])(\w+):?(\d?)[}\]]/g, (_, open, name, place) =>
    `<span data-slot="${name}${open === "[" ? "!" : ""}" data-place="${place}"></span>`)}</span>`)
  .join("")}<span>Unit 1 of sequence 1, step <span data-slot="step"></span>. Coloured: it passed a
  norm.</span></div>`;

// The state, held to what the picture can show (a link can hold anything).
function read(core, model, steps) {
  const [cell, norm] = [model.get("cell"), model.get("norm")];
  return {
    cell: core.PLACES[cell] ? cell : "gru",
    norm: ["rms", "layer", "none"].includes(norm) ? norm : "none",
    places: model.get("places").map((on) => +(on === 1)),
    gain: core.clamp(model.get("gain"), GAINS),
    step: core.clamp(Math.round(model.get("step")), [1, steps]),
  };
}

function render({ model, el, d3, core }) {
  const data = model.get("data");
  const steps = data.sizes[0];
  const bands = core.source(data);
  const start = read(core, model, steps);
  const set = (values) => core.change(model, values);
  const parts = build({
    el, core, data, start, set, now: () => last, times: model.get("times"),
  });
  let last = core.answers(bands, start);
  let [picture, width, shown] = [null, 0, ""];
  function update() {
    last = core.answers(bands, read(core, model, steps));
    if (shown !== `${last.cell} ${width}`) {
      picture = draw({ d3, core, width, data, cell: last.cell, set, now: () => last });
      parts.picture.replaceChildren(...picture.els);
      shown = `${last.cell} ${width}`;
    }
    picture.update(last);
    parts.update(last);
  }
  const stops = [
    core.onChange(model, NAMES, update),
    core.onWidth(parts.picture, (now) => {
      width = now;
      update();
    }),
    parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}

const ALL = [1, 1, 1, 1];
// The buttons; in the LSTM it is the loud input that saturates. The GRU has two norms a side.
const ideas = (set, now) => {
  const isGru = () => now().cell === "gru";
  const show = (norm, places, step = isGru() ? 30 : 13) => set({ norm, places, gain: 4, step });
  return [
    ["No norm: saturated", () => show("none", ALL)],
    ["Only the input normed", () => show("rms", isGru() ? [1, 1, 0, 0] : [1, 0, 0, 0], 30)],
    ["Only the state normed", () => show("rms", isGru() ? [0, 0, 1, 1] : [0, 1, 0, 0], 13)],
  ];
};

const isBare = ({ kinds }) => kinds.every((kind) => kind === "none");
const WORDS = { rms: "RMSNorm", layer: "LayerNorm", none: "no norm" };

function controls({ core, set, now }) {
  return {
    norm: core.choice("Norm", Object.entries(WORDS),
      (norm) => set(isBare(now()) ? { norm, places: ALL } : { norm })),
    cell: core.choice("Cell", [["gru", "GRU"], ["lstm", "LSTM"]],
      (cell) => set({ cell, places: ALL, step: cell === "gru" ? 30 : 13 })),
    gain: core.slider({
      label: "Gain γ of U", range: GAINS, step: 0.1, format: (g) => g.toFixed(1),
      onInput: (gain) => set({ gain }),
    }),
  };
}

// Everything around the picture, in reading order.
function build({ el, core, data, start, set, now, times }) {
  const { node } = core;
  const picture = node("div", { class: "rmsn-halves" });
  const equation = node("div", { class: "rmsn-equation", role: "math" });
  const said = node("output", { class: "rmsn-finding is-long", "aria-live": "polite" });
  const recorded = node("p", { class: "rmsn-times" });
  const { norm, cell, gain } = controls({ core, set, now });
  const table = core.hiddenTable("The share of saturated gates by step");
  el.append(node("div", { class: "rmsn" },
    node("p", { class: "rmsn-title" }, TITLE), node("p", { class: "rmsn-how" }, HOW), picture,
    node("p", { class: "rmsn-key" }, KEY),
    node("div", { class: "rmsn-told" }, equation, node("div", {}, said, recorded)),
    node("div", { class: "rmsn-choices" }, norm.el, cell.el),
    node("div", { class: "rmsn-sliders" }, gain.el),
    core.tries(ideas(set, now), () => set(start)), table.el));
  const tell = teller({ core, equation });
  return {
    picture,
    stop: table.stop,
    update(last) {
      norm.set(isBare(last) ? "none" : last.norm);
      cell.set(last.cell);
      gain.set(last.gain);
      tell(last);
      core.say(said, core.finding(last, data.loud));
      recorded.hidden = !times[last.cell];
      if (times[last.cell]) recorded.replaceChildren(...timesOf(core, times, last));
      table.set(() => rows(core, last));
    },
  };
}

// Writes the numbers into the equation, a new one for another cell.
function teller({ core, equation }) {
  let [fill, cell] = [null, ""];
  return (last) => {
    if (cell !== last.cell) fill = core.slots(equation, html((cell = last.cell)));
    const texts = { step: last.step };
    Object.entries(core.partsOf(last)).forEach(([name, v]) => {
      texts[name] = v.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
      texts[`${name}!`] = texts[name].replace(/^−.*/, "($&)");
    });
    fill(texts);
    equation.querySelectorAll("[data-place]").forEach((slot) => {
      const kind = last.kinds[slot.dataset.place] ?? "none";
      slot.className = kind === "none" ? "" : `is-${kind}`;
    });
    equation.setAttribute("aria-label", equation.textContent.replace(/\s+/g, " "));
  };
}

// What was recorded of the cell with this norm and the others; bold: the one that is on.
function timesOf(core, times, { cell, kinds }) {
  const found = ["none", "rms", "layer"].filter((norm) => times[cell][norm]);
  return [`Recorded, ${times.what}: `, ...found.flatMap((norm, i) => [i ? " · " : "",
    core.node(kinds.every((kind) => kind === norm) ? "b" : "span", {},
      `${WORDS[norm]} ${core.number(times[cell][norm])} ms`)])];
}

function rows(core, { found, bare }) {
  const steps = [1, 5, 10, 13, 15, 20, 25, 30].filter((step) => step <= found.length);
  const row = (name, runs) =>
    [name, ...steps.map((step) => core.percent(runs[step - 1].gates.share))];
  return [["step", ...steps.map(String)], row("this cell", found), row("no norm", bare)];
}

// --- the picture: the cell, and charts of what its functions get
function draw({ d3, core, width, data, cell, set, now }) {
  const half = width >= 620 ? (width - 28) / 2 : width;
  const scheme = core.wiring({
    d3, core, cell, width: Math.min(half, 400), onToggle: (i) => set(core.toggled(now(), i)),
  });
  const tall = half < width || cell === "lstm" ? core.TALL : 240;
  const bands = charts({ d3, core, width: half, tall, data, cell, set, now });
  return {
    els: [scheme.el, bands.el],
    update(last) {
      scheme.update(last);
      bands.update(last);
    },
  };
}

const PANELS = {
  gru: [["gates", "gates r, u before σ", 8], ["candidate", "candidate before tanh", 4.5]],
  lstm: [["gates", "gates i, f, o before σ", 8], ["candidate", "candidate before tanh", 4.5],
    ["memory", "new c before tanh", 4.5]],
};

function charts({ d3, core, width, tall: height, data, cell, set, now }) {
  const svg = core.picture(d3, width, height, "Spread of the pre-activations by step");
  const [left, right, top, gap, foot] = [30, width - 6, 22, 26, 24];
  const [tall, steps, list] = [height - top - foot, data.sizes[0], PANELS[cell]];
  const x = d3.scaleLinear([1, steps], [left, right]);
  const frame = { left, right, top, tall, x };
  backdrop({ d3, core, svg, frame, loud: data.loud });
  const room = tall - gap * (list.length - 1);
  const units = list.reduce((sum, [, , limit]) => sum + limit, 0);
  let y = top;
  const parts = list.map(([name, title, limit]) => {
    const box = { ...frame, top: y, high: (limit / units) * room, limit, end: core.ENDS[name] };
    y += box.high + gap;
    panel({ d3, core, svg, box, name, title });
    return curves({ d3, core, svg, box, name });
  });
  parts.push(marker({ d3, core, svg, frame, steps, set, now }));
  return { el: svg.node(), update: (last) => parts.forEach((part) => part(last)) };
}

// The axis of steps, and the steps at which the input is loud.
function backdrop({ d3, core, svg, frame: { top, tall, x }, loud }) {
  const [from, to] = [x(loud[0] - 0.5), x(loud[1] + 0.5)];
  svg.append("rect").attr("class", "rmsn-loud").attr("x", from).attr("width", to - from)
    .attr("y", top).attr("height", tall);
  core.bare(svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${top + tall})`).call(d3.axisBottom(x)
      .tickValues([1, 13, 20, 30]).tickSize(4)
      .tickFormat((v) => ({ 1: "step 1", 13: "input × 3" })[v] ?? v)));
}

function marker({ d3, core, svg, frame, steps, set, now }) {
  const { group, stem } = core.reader({
    d3, svg, box: frame, label: "Step to read", range: [1, steps], step: 1,
    value: () => now().step, move: (v) => set({ step: core.clamp(Math.round(v), [1, steps]) }),
  });
  return ({ step, share, bareShare }) => {
    core.put(stem, { transform: () => `translate(${frame.x(step)},0)` });
    core.put(group, {
      "aria-valuenow": () => step,
      "aria-valuetext": () => `step ${step}: ${core.percent(share)} of the gates saturated, `
        + `without a norm ${core.percent(bareShare)}`,
    });
  };
}

// One chart's title and lines, and where its function is near an end.
function panel({ d3, core, svg, box: { left, right, top, high, limit, end }, name, title }) {
  const y = d3.scaleLinear([-limit, limit], [top + high, top]);
  [[limit, end], [-end, -limit]].forEach(([from, to]) => svg.append("rect")
    .attr("class", "rmsn-beyond").attr("x", left).attr("width", right - left)
    .attr("y", y(from)).attr("height", y(to) - y(from)));
  const format = (v) => (v ? d3.format(".1f")(v) : high > 75 ? "0" : ""); // where there is room
  core.hairlines(d3, svg, { y, ticks: [-end, 0, end], left, right, format });
  core.words(svg, 0, top - 7, [["", title]]);
  if (name !== "gates") return;
  note(svg, left + 6, top + 15, "gate > 0.95");
  note(svg, left + 6, top + high - 7, "gate < 0.05");
}

const note = (svg, x, y, text) => svg.append("text").attr("aria-hidden", "true")
  .attr("class", "rmsn-label is-small rmsn-halo").attr("x", x).attr("y", y).text(text);

// Bands of the middle 90% and 50%, the median, and dashed what no norm would give.
function curves({ d3, core, svg, box: { left, right, top, high, limit, x }, name }) {
  const clip = svg.append("svg").attr("class", "rmsn-clip").attr("x", left).attr("y", top)
    .attr("width", right - left).attr("height", high).attr("aria-hidden", "true");
  const y = d3.scaleLinear([-limit, limit], [high, 0]);
  const at = (_, i) => x(i + 1) - left;
  const area = (k) => d3.area().x(at).y0((q) => y(q[k])).y1((q) => y(q[4 - k]));
  const line = (k) => d3.line().x(at).y((q) => y(q[k]));
  const shapes = [["rmsn-spread", area(0)], ["rmsn-spread is-core", area(1)],
    ["rmsn-curve is-slim", line(2)], ["rmsn-curve is-ghost", line(0)],
    ["rmsn-curve is-ghost", line(4)]].map(([cls, shape]) => [clip.append("path"), cls, shape]);
  const ghost = note(svg, x(19), 0, name === "gates" ? "no norm" : "");
  const share = note(svg, right, top - 7, "").attr("text-anchor", "end");
  return (last) => {
    const kind = last.kinds.find((k) => k !== "none") ?? "none";
    const [found, bare] = [last.found, last.bare].map((run) => run.map((s) => s[name].quantiles));
    shapes.forEach(([path, cls, shape], i) => core.put(path, {
      class: () => (i < 3 ? `${cls} is-${kind}` : cls), d: () => shape(i < 3 ? found : bare),
    }));
    core.put(ghost, {
      y: () => top + y(bare[18][4]) - 6,
      visibility: () => (kind === "none" ? "hidden" : "visible"),
    });
    core.put(share, { class: () => `rmsn-label is-small is-${kind}` });
    core.say(share.node(), `saturated ${core.percent(last.now[name].share)}`);
  };
}

export default { render };
