// Keeps a figure alive whose picture is drawn for a width and then only updated.

// `answer(last)` gives all that the figure shows, `draw(width, now)` the picture as { el, update },
// where now() is the last answer; `parts` are what stands around it: { picture, update, stop }.
// Returns the function that stops it.
export function live({ core, model, names, parts, answer, draw }) {
  let last = null;
  let picture = null;
  function update() {
    last = answer(last);
    picture?.(last);
    parts.update(last);
  }
  const stops = [
    core.onChange(model, names, update),
    core.onWidth(parts.picture, (width) => {
      const drawn = draw(width, () => last);
      picture = drawn.update;
      parts.picture.replaceChildren(drawn.el);
      update();
    }),
    parts.stop,
  ];
  return () => stops.forEach((stop) => stop());
}
