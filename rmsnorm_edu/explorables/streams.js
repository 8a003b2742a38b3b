// What the figure of the ladder counts, and the picture of the arrays that stream past.
export const RUNGS = ["loop", "numpy", "einsum", "blocked", "fused", "streamed", "copy"];
const IN_CACHE = "cache";

// --- pure: `node --test` runs it
const isMemory = ([, , place]) => place !== IN_CACHE;
export const streamsOf = (data, rung) => data.rungs[rung].flatMap(([, streams]) => streams);

// How many arrays of x's size cross between memory and processor.
export const arrays = (data, rung) => streamsOf(data, rung).filter(isMemory).length;

// What is recorded for a method into touched or fresh memory: ms for all rows, copies, faults.
export function timeOf(data, shape, method, fresh = false) {
  const times = data.times[shape.join("x")];
  const found = times[fresh ? `${method} (fresh)` : method];
  if (!found) return null;
  const [ms, rows, faults] = found;
  const [copy] = times.copy;
  const all = (ms * shape[0]) / rows;
  return { ms: all, copies: all / copy, faults };
}

// All that the figure shows at a state.
export function answers(data, { rung, at, output }) {
  const shape = data.shapes[at];
  const copy = timeOf(data, shape, "copy").ms;
  const bars = RUNGS.map((name) => {
    const count = arrays(data, name);
    const copies = count / arrays(data, "copy");
    return {
      name, count, copies, counted: copies * copy, streams: streamsOf(data, name).filter(isMemory),
      touched: timeOf(data, shape, name), fresh: timeOf(data, shape, name, true),
    };
  });
  const chosen = bars.find(({ name }) => name === rung);
  const isFresh = output === "fresh" && chosen.fresh !== null;
  return {
    rung, at, output, shape, bars, chosen, isFresh, copy,
    recorded: isFresh ? chosen.fresh : chosen.touched,
    unit: shape[0] * shape[1] * data.size, steps: data.rungs[rung],
  };
}

// The longest time that the axis must hold: what takes eight copies or more leaves it by an arrow.
export const longest = ({ bars, copy }) => Math.max(...bars.flatMap((bar) =>
  [bar.counted, ...[bar.touched, bar.fresh].map((entry) => entry?.ms ?? 0)
    .filter((ms) => ms < 8 * copy)]));

export const times = (v) => (v >= 100 ? String(Math.round(v)) : v.toPrecision(v < 10 ? 2 : 3));
export const whole = (v) => String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, "\u2009");

// What fresh memory costs beside memory that was written before.
function freshly({ chosen, isFresh }) {
  if (!isFresh) return "Into fresh memory only copy and fused are recorded: read those two.";
  const { fresh, touched } = chosen;
  if (fresh.faults < 100) {
    return "No page fault: arrays of this size are handed out again after they are freed, so "
      + "fresh memory is not fresh. Choose the largest shape.";
  }
  return `The program moves the same bytes, and takes ${times(fresh.ms / touched.ms)} times as long. `
    + `${whole(fresh.faults)} times a call touched a page that it did not have yet: the system `
    + "stopped it, found a page, filled it with zeros.";
}

// What explains the recorded time, beyond the counted bytes.
function beyond({ chosen: { copies, touched, name } }) {
  const rest = touched.copies / copies;
  if (rest < 0.8) return "That is less than counted: part of the arrays was still in a cache.";
  if (rest < 1.35) return "The bytes explain the time.";
  if (touched.faults > 100) {
    return "The rest: one thread, and arrays in between that are fresh in every call, with "
      + `${whole(touched.faults)} page faults.`;
  }
  return ["fused", "streamed"].includes(name) ? "The rest is arithmetic, and threads that wait for each other."
    : "The rest: one thread, and its arithmetic.";
}

export function finding(last) {
  const { rung, output, chosen: { count, copies, touched }, steps } = last;
  if (output === "fresh") return freshly(last);
  if (rung === "copy") {
    return "The limit. Of its 3 passes the program asks for two: before a line is written, the "
      + "processor reads it, since it cannot know that all of it will be written (write-allocate).";
  }
  if (rung === "loop") {
    return `It moves no more than a copy, and takes ${times(touched.copies)} times as long. Python `
      + "handles one number at a time: here the memory waits for the program.";
  }
  const cached = steps.flatMap(([, s]) => s).filter((s) => !isMemory(s)).length;
  return `${count} passes over the memory, ${copies === 1 ? "as in a copy"
    : `${times(copies)} times those of a copy`}${cached ? `; ${cached} more in the cache` : ""}. `
    + `Recorded: ${times(touched.copies)} times the copy’s time. ${beyond(last)}`;
}

// The columns of the picture: a step's streams, then a gap; the x of each and its width.
export function columns(steps, [left, right], gap) {
  const count = steps.reduce((sum, [, streams]) => sum + streams.length, 0);
  const wide = Math.min(64, (right - left - gap * (steps.length - 1)) / count);
  let x = left + (right - left - wide * count - gap * (steps.length - 1)) / 2;
  return steps.map(([name, streams]) => {
    const from = x;
    const own = streams.map(([array, way, place]) => {
      x += wide;
      return { array, way, place, x: x - wide / 2, wide: 0.5 * wide };
    });
    x += gap;
    return { name, from, to: x - gap, streams: own };
  });
}

// An arrow from a height to another, as thick as it is told, its head no longer than itself.
export function thick({ x, wide }, from, to) {
  const side = wide / 2;
  const down = Math.sign(to - from);
  const head = to - down * Math.min(10, Math.abs(to - from));
  return `M${x - side},${from}V${head}H${x - side - 4}L${x},${to}L${x + side + 4},${head}H${x + side}`
    + `V${from}Z`;
}

// Words in lines of a number of letters; a longer word has a line of its own.
export const wrapped = (text, letters) => text.split(" ").reduce((lines, word) => {
  const longer = `${lines.at(-1)} ${word}`.trim();
  return longer.length <= letters ? [...lines.slice(0, -1), longer] : [...lines, word];
}, [""]).filter(Boolean);

// What an array is called: x, its squares, x divided by its RMS, y.
export const symbol = (array) => ({ squares: "x²", xhat: "x\u0302" }[array] ?? array);

export const colourOf = (array) => ({ x: "is-input", y: "is-result" }[array] ?? "is-between");

// --- the picture: memory above, the cache between, registers below
export function flow({ core, svg, box }) {
  const { left, right, top, isNarrow } = box;
  const bands = [["memory", top, 26], ["cache", top + 70, 22], ["registers", top + 136, 22]];
  const ground = svg.append("g").attr("aria-hidden", "true");
  ground.selectAll("rect").data(bands).join("rect").attr("class", "rmsn-column").attr("x", left)
    .attr("width", right - left).attr("y", ([, y]) => y).attr("height", ([, , tall]) => tall)
    .attr("rx", 5);
  const [streams, labels, zeros, steps] = [0, 1, 2, 3].map(() => svg.append("g").attr("aria-hidden", "true"));
  ground.selectAll("text").data(bands).join("text").attr("class", "rmsn-label is-small")
    .attr("x", left + 6).attr("y", ([, y, tall]) => y + tall / 2 + 4).text(([name]) => name);
  const [memory, cache, registers] = bands.map(([, y, tall]) => [y + tall, y]);
  const ends = ({ way, place }) => {
    const store = place === IN_CACHE ? cache[0] : memory[0];
    if (way === "allocate") return [memory[0], cache[1]];
    return way === "read" ? [store, registers[1]] : [registers[1], store];
  };
  const name = ({ place }) => (place === IN_CACHE ? cache : memory)[0] - (place === IN_CACHE ? 6 : 8);
  return (last) => {
    const found = columns(last.steps, [left + (isNarrow ? 62 : 84), right - 4], isNarrow ? 8 : 22);
    const all = found.flatMap((step) => step.streams);
    core.put(streams.selectAll("path").data(all).join("path"), {
      d: (s) => thick(s, ...ends(s)),
      "class": (s) => `rmsn-stream ${colourOf(s.array)} is-${s.way}`,
    });
    const texts = labels.selectAll("text").data(all).join("text");
    core.put(texts, {
      x: (s) => s.x, y: name, "text-anchor": () => "middle",
      "class": () => "rmsn-label is-small is-ink",
    });
    texts.each(function write(s) {
      core.say(this, symbol(s.array));
    });
    const zeroed = last.isFresh && last.recorded.faults > 0
      ? all.filter((s) => s.way === "allocate") : [];
    core.put(zeros.selectAll("text").data(zeroed).join("text").text("0"), {
      x: (s) => s.x, y: () => memory[0] + 26, "text-anchor": () => "middle",
      "class": () => "rmsn-label is-small is-ink",
    });
    steps.selectAll("text").data(found).join("text").attr("class", "rmsn-label is-small")
      .attr("text-anchor", "middle").each(function wrap({ name: text, from, to }) {
        const lines = wrapped(text, (to - from + (isNarrow ? 8 : 22)) / 6.4);
        this.replaceChildren(...lines.map((line, i) => {
          const part = document.createElementNS("http://www.w3.org/2000/svg", "tspan");
          part.setAttribute("x", (from + to) / 2);
          part.setAttribute("y", registers[0] + 16 + 14 * i);
          part.textContent = line;
          return part;
        }));
      });
  };
}

// Page faults as squares, one for each thousand.
export function faults({ core, svg, box: { left, right, faultsAt: y } }) {
  const group = svg.append("g").attr("aria-hidden", "true");
  const label = group.append("text").attr("class", "rmsn-label is-small").attr("x", left)
    .attr("y", y);
  return ({ recorded }) => {
    const most = Math.floor((right - left) / 9);
    const count = Math.min(most, Math.ceil(recorded.faults / 1000));
    core.say(label.node(), recorded.faults === 0 ? "page faults in a call: none"
      : `page faults in a call: ${whole(recorded.faults)} (a square: up to 1000)`);
    core.put(group.selectAll("rect").data(Array.from({ length: count }, (_, i) => i)).join("rect"), {
      x: (i) => left + 9 * i, y: () => y + 7, width: () => 7, height: () => 7,
      "class": () => "rmsn-page",
    });
  };
}
