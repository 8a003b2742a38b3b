// The drawing of a recurrent cell: boxes and wires as the 2019 code computes it, norms as switches.
export const TALL = 300; // of the drawing, in pixels

// What each norm of a cell stands behind, and what it normalises together.
export const PLACES = {
  gru: [["x W + b", "r and u"], ["x Wx + bx", "c"], ["h U", "r and u"], ["h Ux", "c"]],
  lstm: [["x W + b", "i, f, o, g"], ["h U", "i, f, o, g"], ["the new c", "c"]],
};

// Columns and rows as shares of the width and as pixels. A box is [x, y, width, height, text], a
// norm [x, y, width], a label [x, y, text, anchor]; wires are paths.
const SCENES = {
  gru: (w) => {
    const [a, b, c, d, left, mid, right] = [0.118, 0.36, 0.64, 0.882, 0.239, 0.5, 0.761]
      .map((share) => share * w);
    const half = 0.116 * w;
    const down = (x, from, to) => `M${x},${from}V${to}`;
    return {
      boxes: [
        ...[[a, "x W + b"], [b, "h U"], [c, "h Ux"], [d, "x Wx + bx"]]
          .map(([x, text]) => [x - half, 34, 2 * half, 26, text]),
        [left - half, 162, 2 * half, 26, "σ"], [right - half, 202, 2 * half, 26, "tanh"],
        [1, 262, w - 2, 32, "new h = u · old h + (1 − u) · c"],
      ],
      norms: [[a, 76], [d, 76], [b, 76], [c, 76]].map(([x, y]) => [x - half, y, 2 * half]),
      wires: [
        ...[a, b, c, d].map((x) => down(x, 60, 76)), down(a, 18, 34), down(d, 18, 34),
        `M${mid},26H${b}V34`, `M${mid},26H${c}V34`, down(left, 149, 162), down(left, 188, 262),
        `M${a},118V140H${left - 9}`, `M${b},118V140H${left + 9}`,
        `M${left + half},175H${mid - 6}a6,6 0 0 1 12,0H${c - 9}`, down(mid, 18, 262),
        `M${c},118V166`, `M${c + 9},175H${right - 9}`, `M${d},118V175H${right + 9}`,
        down(right, 184, 202), down(right, 228, 262),
      ],
      sums: [[left, 140, "+"], [c, 175, "×"], [right, 175, "+"]],
      labels: [[a, 12, "input x"], [mid, 12, "old h"], [d, 12, "input x"], [mid - 22, 169, "r"],
        [left + 12, 230, "u"], [right + 12, 248, "c"]],
    };
  },
  lstm: (w) => {
    const [x, h, sum, c, half] = [0.14 * w, 0.42 * w, 0.28 * w, 0.8 * w, 0.13 * w];
    return {
      boxes: [
        [x - half, 34, 2 * half, 26, "x W + b"], [h - half, 34, 2 * half, 26, "h U"],
        [1, 160, 0.55 * w, 26, "σ: i, f, o and tanh: g"],
        [0.63 * w, 160, 0.37 * w - 1, 26, "f · old c + i · g"],
        [c - half, 260, 2 * half, 26, "tanh"], [1, 260, 2 * half, 26, "new h"],
      ],
      norms: [[x, 76], [h, 76], [c, 204]].map(([at, y]) => [at - half, y, 2 * half]),
      wires: [
        ...[x, h].flatMap((at) => [`M${at},18V34`, `M${at},60V76`]), `M${c},18V160`,
        `M${x},118V140H${sum - 9}`, `M${h},118V140H${sum + 9}`, `M${sum},149V160`,
        `M${0.55 * w + 1},173H${0.63 * w}`, `M${c},186V204`, `M${c},246V260`,
        `M${c - half},273H${h + 9}`, `M${h},186V264`, `M${h - 9},273H${2 * half + 1}`,
        `M${0.97 * w},186V284`,
      ],
      sums: [[sum, 140, "+"], [h, 273, "×"]],
      labels: [[x, 12, "input x"], [h, 12, "old h"], [c, 12, "old c"], [h + 12, 230, "o"],
        [h + 4, 144, "+ b again", "start"], [w, 298, "new c", "end"]],
    };
  },
};

// The head of an arrow at the end of a wire, which runs straight across or down.
function head(wire) {
  let [x, y, dx, dy] = [0, 0, 0, 0];
  for (const [, way, a, b] of wire.matchAll(/([MVH])([\d.]+),?([\d.]*)/g)) {
    if (way === "V") [dx, dy, y] = [0, Math.sign(a - y), +a];
    if (way === "H") [dx, dy, x] = [Math.sign(a - x), 0, +a];
    if (way === "M") [x, y] = [+a, +b];
  }
  const [backX, backY] = [x - 5 * dx, y - 5 * dy];
  return `M${backX - 3 * dy},${backY - 3 * dx}L${x},${y}L${backX + 3 * dy},${backY + 3 * dx}`;
}

export function wiring({ d3, core, width, cell, onToggle }) {
  const svg = core.picture(d3, width, TALL, "The cell: norms are switches");
  const scene = SCENES[cell](width);
  const still = svg.append("g").attr("aria-hidden", "true");
  still.selectAll("path").data(scene.wires).join("path").attr("class", "rmsn-wire")
    .attr("d", (d) => d + head(d));
  boxes(core, still, scene);
  const norms = switches({ d3, core, svg, cell, scene, onToggle });
  return { el: svg.node(), update: norms };
}

function boxes(core, still, { boxes: found, sums, labels }) {
  const text = (data, cls, at) => still.append("g").selectAll("text").data(data).join("text")
    .attr("class", cls).attr("x", (d) => at(d)[0]).attr("y", (d) => at(d)[1])
    .attr("text-anchor", (d) => at(d)[3] ?? "middle").text((d) => at(d)[2]);
  still.append("g").selectAll("rect").data(found).join("rect").attr("class", "rmsn-box")
    .attr("x", (d) => d[0]).attr("y", (d) => d[1]).attr("width", (d) => d[2])
    .attr("height", (d) => d[3]).attr("rx", 5);
  text(found, "rmsn-made", ([x, y, w, h, t]) => [x + w / 2, y + h / 2 + 4.5, t]);
  still.append("g").selectAll("circle").data(sums).join("circle").attr("class", "rmsn-box")
    .attr("cx", (d) => d[0]).attr("cy", (d) => d[1]).attr("r", 9);
  text(sums, "rmsn-made", ([x, y, t]) => [x, y + 5, t]);
  text(labels, "rmsn-label is-small rmsn-halo", (d) => d);
}

// A norm is a box that a tap, Enter or the space bar switches.
function switches({ d3, core, svg, cell, scene, onToggle }) {
  const found = [];
  const order = scene.norms.map((_, i) => i).sort((i, j) => scene.norms[i][0] - scene.norms[j][0]);
  order.forEach((i) => {
    const [x, y, w] = scene.norms[i];
    const g = svg.append("g").attr("class", "rmsn-norm").attr("tabindex", 0).attr("role", "switch")
      .attr("aria-label", `Norm s${i + 1}, after ${PLACES[cell][i][0]}`)
      .on("click", () => onToggle(i)).on("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onToggle(i);
      });
    g.append("rect").attr("x", x).attr("y", y).attr("width", w).attr("height", 42).attr("rx", 7);
    const line = (cls, at) => g.append("text").attr("class", cls).attr("text-anchor", "middle")
      .attr("x", x + w / 2).attr("y", y + at);
    const name = line("rmsn-label is-small", 18);
    core.typeset(line("rmsn-over", 34).node(), `s${core.small(i + 1, -1)}: ${PLACES[cell][i][1]}`);
    found[i] = { g, name };
  });
  return (last) => last.kinds.forEach((kind, i) => {
    const { g, name } = found[i];
    const isOn = kind !== "none";
    core.put(g.datum(kind), {
      "class": () => `rmsn-norm is-${kind}`, "aria-checked": () => isOn,
    });
    core.say(name.node(), { rms: "RMSNorm", layer: "LayerNorm", none: "no norm" }[kind]);
  });
}
