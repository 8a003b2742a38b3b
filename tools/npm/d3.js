// What the figures use of D3: tools/vendor.py bundles it into rmsnorm_edu/explorables/d3.js.
export { bisector, extent, range, ticks } from "d3-array";
export { axisBottom, axisLeft } from "d3-axis";
export { drag } from "d3-drag";
export { format, formatLocale } from "d3-format";
export { scaleBand, scaleLinear, scaleLog } from "d3-scale";
export { create, pointer, select, selectAll } from "d3-selection";
export { area, curveMonotoneX, line } from "d3-shape";
