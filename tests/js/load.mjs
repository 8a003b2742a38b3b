// The figures' modules and their vectors, for `node --test`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const FIGURES = new URL("../../rmsnorm_edu/explorables/", import.meta.url);
export const load = (name) => {
  const source = readFileSync(new URL(`${name}.js`, FIGURES), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
};
export const vectors = (name) =>
  JSON.parse(readFileSync(new URL(`vectors/${name}.json`, import.meta.url), "utf8"));

// float64 here and there: 1e-12 of the largest one, sums of a dozen terms apart.
export function near(found, expected) {
  const [a, b] = [[found].flat(Infinity), [expected].flat(Infinity)];
  assert.equal(a.length, b.length);
  const scale = Math.max(1, ...b.map(Math.abs));
  a.forEach((v, i) => assert.ok(Math.abs(v - b[i]) <= 1e-12 * scale, `${v} is not ${b[i]}`));
}
