// What only a table of cells needs: the table as a control, and bars in groups.

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
  const cells = rows.map((_, i) => columns.map(([cls], j) => {
    const td = core.node("td", { class: cls, tabindex: -1 });
    td.addEventListener("click", () => td.focus());
    td.addEventListener("focus", () => onChoose(i, j));
    td.addEventListener("keydown", (event) => onKey(event, i, j));
    return td;
  }));
  const head = columns.map(([cls, short, name]) =>
    core.node("th", { scope: "col", class: cls, "aria-label": name }, short));
  const { node } = core;
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
  return { el: node("div", {}, table, key), corner, show, choose };
}

// Bars in groups between ±limit, each over a tick where it stood; returns the function that draws
// matrices of a group a row. What is beyond the limit ends at it, what is no number is 0.
export function groupedBars({ d3, core, svg, groups, bars, from, tall, limit, left, width }) {
  const y = d3.scaleLinear([-limit, limit], [from + tall, from]);
  core.hairlines(d3, svg, { y, ticks: [-2, 0, 2], left, right: width });
  const places = groups.domain().flatMap((i) => bars.domain().map((j) => [i, j]));
  const at = ([i, j]) => groups(i) + bars(j);
  const group = svg.append("g").attr("aria-hidden", "true");
  const bar = group.selectAll("rect").data(places).join("rect").attr("rx", 1)
    .attr("class", "rmsn-mark").attr("x", at).attr("width", bars.bandwidth());
  const tick = group.selectAll("path").data(places).join("path").attr("class", "rmsn-stood");
  const end = (m, [i, j]) => y(Number.isFinite(m[i][j]) ? core.clamp(m[i][j], y.domain()) : 0);
  return (colour, now, before) => {
    group.attr("class", `is-${colour}`);
    core.put(bar, {
      y: (d) => Math.min(y(0), end(now, d)), height: (d) => Math.abs(end(now, d) - y(0)),
    });
    core.put(tick, { d: (d) => `M${at(d) - 1},${end(before, d)}h${bars.bandwidth() + 2}` });
  };
}
