// What only the invariance table needs: the table as a control, and its picture.

// A table whose cells are chosen. One cell has the Tab stop, arrow keys walk, Enter acts.
// `rows` are names; `columns` are [class, short name, name]; `signs` explain what cells show;
// `show(i, j, text, name)` writes.
export function grid({ core, label, rows, columns, signs, onChoose, onAct }) {
  const walk = ({ key }, i, j) => ({
    ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
    Home: [i, 0], End: [i, columns.length - 1],
  })[key];
  const onKey = (event, i, j) => {
    const to = walk(event, i, j);
    if (to) cells[to[0]]?.[to[1]]?.focus();
    else if (event.key === "Enter" || event.key === " ") onAct(i, j);
    else return;
    event.preventDefault();
  };
  const { node } = core;
  const cells = rows.map((_, i) => columns.map(([cls], j) => {
    const td = node("td", { class: cls, tabindex: -1 });
    td.addEventListener("click", () => td.focus());
    td.addEventListener("focus", () => onChoose(i, j));
    td.addEventListener("keydown", (event) => onKey(event, i, j));
    return td;
  }));
  const head = columns.map(([cls, short, name]) =>
    node("th", { scope: "col", class: cls, "aria-label": name }, short));
  const corner = node("td", { class: "rmsn-corner" });
  const table = node("table", { class: "rmsn-grid", role: "grid", "aria-label": label },
    node("thead", {}, node("tr", {}, corner, ...head)),
    node("tbody", {}, ...rows.map((row, i) =>
      node("tr", {}, node("th", { scope: "row" }, row), ...cells[i]))));
  const show = (i, j, text, name) => {
    core.say(cells[i][j], text);
    cells[i][j].dataset.text = text;
    cells[i][j].setAttribute("aria-label", name);
  };
  const choose = (i, j) => cells.forEach((row, k) => row.forEach((td, l) => {
    td.setAttribute("aria-selected", k === i && l === j);
    td.tabIndex = k === i && l === j ? 0 : -1;
  }));
  const key = node("p", { class: "rmsn-key" }, ...signs.map((sign) => node("span", {}, sign)));
  return { el: table, key, corner, show, choose };
}

// Bars in groups between ±limit, `unit` pixels a unit; where one has moved, a hollow outline stands
// where it stood. Returns the function that draws matrices of a group a row. What is beyond
// the limit ends at it, what is no number is 0.
function groupedBars({ d3, core, svg, groups, bars, from, unit, limit, left, width }) {
  const y = d3.scaleLinear([-limit, limit], [from + 2 * limit * unit, from]);
  core.hairlines(d3, svg, { y, ticks: d3.range(-4, 5, 2).filter((v) => Math.abs(v) < limit), left,
    right: width });
  const places = groups.domain().flatMap((i) => bars.domain().map((j) => [i, j]));
  const group = svg.append("g").attr("aria-hidden", "true");
  const rects = (cls, inset) => group.selectAll(`.${cls}`).data(places).join("rect")
    .attr("class", cls).attr("x", ([i, j]) => groups(i) + bars(j) + inset)
    .attr("width", bars.bandwidth() - 2 * inset);
  const [bar, stood] = [rects("rmsn-mark", 0), rects("rmsn-stood", 0.5)];
  const end = (m) => ([i, j]) => (Number.isFinite(m[i][j]) ? core.clamp(m[i][j], y.domain()) : 0);
  return (colour, now, before) => {
    group.attr("class", `is-${colour}`);
    core.put(bar, core.span(y, end(now)));
    core.put(stood, core.span(y, end(before)));
    stood.classed("is-away", (d) => Math.abs(end(now)(d) - end(before)(d)) * unit > 0.6);
  };
}

// The picture: what the norm gets, and below it the outputs; both panels have the same pixels for
// a unit, so that to divide does not look like growing.
export function panels({ d3, core, width, isNarrow, example }) {
  const [left, top, unit, limits] = [22, 20, isNarrow ? 12 : 18, [5, 2.8]];
  const base = top + 2 * limits[0] * unit + 34;
  const foot = base + 2 * limits[1] * unit;
  const svg = core.picture(d3, width, foot + 20, "The outputs of four examples");
  const shown = d3.range(isNarrow ? 2 : example.x.length);
  const groups = d3.scaleBand(shown, [left, width]).paddingInner(0.12);
  const bars = d3.scaleBand(d3.range(example.w.length), [0, groups.bandwidth()]).paddingInner(0.2);
  const box = { d3, core, svg, groups, bars, left, width, unit };
  const high = groupedBars({ ...box, from: top, limit: limits[0] });
  const low = groupedBars({ ...box, from: base, limit: limits[1] });
  core.words(svg, left, 12, [["is-input", "■ Wx, before the norm"]]);
  const title = core.words(svg, left, base - 8, [[], []]);
  svg.append("g").attr("class", "rmsn-axis").attr("aria-hidden", "true").selectAll("text")
    .data(shown).join("text").attr("text-anchor", "middle")
    .attr("x", (i) => groups(i) + groups.bandwidth() / 2).attr("y", foot + 14)
    .text((i) => (isNarrow ? `example ${i + 1} of 4` : `example ${i + 1}`));
  return {
    el: svg.node(),
    update({ state: { method, change }, isStart, input, moved, before, after }) {
      svg.classed("has-moved", !isStart);
      high("input", moved, input);
      low(method.colour, after, before);
      title.data([[`is-${method.colour}`, `■ ${method.name}`],
        ["is-was", change.key === "rotation" ? "□ Qy, y turned" : "□ before"]])
        .attr("class", ([cls]) => cls).text(([, text]) => text);
    },
  };
}
