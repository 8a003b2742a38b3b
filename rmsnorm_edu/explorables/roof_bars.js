// The bytes of an operation as bars, beside those of its twins: the longer, the more time it takes.
const [ROW, BAR] = [50, 22]; // the height of a bar with its words, and without
const INPUTS = ["x", "residual", "dy", "dresidual"];
const RESULTS = ["y", "new_residual", "dx", "dweight", "dbias"];

// --- pure: `node --test` runs it
export const colourOf = (operation) => (operation.startsWith("layer") ? "is-layer" : "is-rms");

// What an item is to the reader: what comes in, what goes out, or what lies between.
export function kindOf({ verb, array }) {
  if (verb === "read" && INPUTS.includes(array)) return "is-input";
  return verb === "write" && RESULTS.includes(array) ? "is-result" : "is-between";
}

// The items as bars that follow each other: { from, to } in seconds, scaled to the floor.
export function laid({ parts, bytes, floor }) {
  let sum = 0;
  return parts.map((part) => {
    const from = sum;
    sum += part.bytes;
    return { ...part, from: (from / bytes) * floor, to: (sum / bytes) * floor };
  });
}

// --- the picture
export function bars({ d3, core, svg, box, data, choose }) {
  const { left, right, bars: top, isNarrow } = box;
  const x = d3.scaleLinear().range([left, right - 14]);
  const key = core.words(svg, 0, top, [["", isNarrow ? "Bytes as time:" : "Bytes, as time at the "
    + "full speed of the memory:"], ["is-in", "inputs"], ["is-out", "results"],
  ...(isNarrow ? [] : [["", "pale: in between"]])]);
  const rows = [0, 1, 2].map((i) => row({ core, svg, box, data, choose, top: top + 14 + i * ROW }));
  const axis = svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true")
    .attr("transform", `translate(0,${top + 14 + 3 * ROW})`);
  return (last) => {
    const ends = last.bars.flatMap((bar) =>
      [bar.floor, ...bar.points.map(({ seconds }) => seconds)]);
    x.domain([0, Math.max(...ends) * 1.02]);
    rows.forEach((draw, i) => draw(last, last.bars[i], x));
    key.classed("is-layer", ([cls]) => cls === "is-out" && colourOf(last.operation) === "is-layer");
    axis.call(d3.axisBottom(x).ticks(isNarrow ? 3 : 6).tickSize(5).tickPadding(4)
      .tickFormat((v) => core.si(v, "s").replace(/\.?0+(?=\s)/, (zeros) =>
        (zeros.startsWith(".") ? "" : zeros))));
    core.bare(axis).selectAll("text") // the first begins at the edge of the picture
      .attr("text-anchor", (v) => (v === 0 ? "start" : null));
  };
}

// One operation: its words, its bar, and what was measured.
function row({ core, svg, box: { left, right, isNarrow }, data, choose, top }) {
  const group = svg.append("g").attr("aria-hidden", "true");
  const [name, beside] = ["", "is-small rmsn-halo"].map((cls) => group.append("text")
    .attr("class", `rmsn-label ${cls}`).attr("x", left));
  const boxes = group.append("g");
  const marks = group.append("g");
  const hit = group.append("rect").attr("class", "rmsn-hit").attr("x", left).attr("y", top - 4)
    .attr("width", right - left).attr("height", ROW - 4);
  name.attr("y", top + 14);
  beside.attr("y", top + 20 + BAR / 2 + 4.5);
  return (last, bar, x) => {
    hit.on("click", () => choose(bar.operation));
    const isOwn = bar.operation === last.operation;
    core.put(group, {
      "class": () => `rmsn-way ${colourOf(bar.operation)}${isOwn ? " is-own" : ""}`,
    });
    const norm = bar.isOther ? `${bar.family.norm}, ` : "";
    const bytes = isNarrow && bar.isOther ? "" : `${core.si(bar.bytes, "B")}, `;
    core.say(name.node(), `${norm}${data.ways[bar.way]}: ${bytes}${isNarrow ? "≥" : "at least"} `
      + core.si(bar.floor, "s"));
    fillBar(core, boxes, laid(bar), x, top + 20, isOwn);
    core.put(marks.selectAll("path").data(bar.points).join("path"), {
      d: ({ seconds }) => `M${x(seconds)},${top + 20 + BAR / 2 - 7}l7,7l-7,7l-7,-7Z`,
      "class": () => "rmsn-point is-own",
    });
    const [point, ...more] = bar.points;
    const [at, end] = [point && !more.length ? x(point.seconds) : 0, x(bar.floor)];
    const isLast = at > right - 76; // there is room before the point only
    const isFree = at > end + (isLast ? 76 : 8);
    core.put(beside, {
      x: () => (isLast ? at - 11 : at + 11), "text-anchor": () => (isLast ? "end" : "start"),
    });
    core.say(beside.node(), isFree ? "reported" : "");
  };
}

function fillBar(core, boxes, all, x, y, isOwn) {
  const wide = (part) => x(part.to) - x(part.from);
  const parts = all.filter((part) => wide(part) >= 0.3);
  core.put(boxes.selectAll("rect").data(parts).join("rect"), {
    x: (part) => x(part.from), width: (part) => Math.max(wide(part) - 1, 0.5),
    y: () => y, height: () => BAR,
    "class": (part) => `rmsn-part ${kindOf(part)} is-${part.verb}`,
  });
  const named = isOwn ? parts.filter((part) => wide(part) > 7 * part.array.length + 5) : [];
  const texts = boxes.selectAll("text").data(named).join("text");
  core.put(texts, {
    x: (part) => (x(part.from) + x(part.to)) / 2, y: () => y + BAR / 2 + 4.5,
    "class": (part) => `rmsn-inside ${kindOf(part)}`,
  });
  texts.each(function write({ array }) {
    core.say(this, array);
  });
}
