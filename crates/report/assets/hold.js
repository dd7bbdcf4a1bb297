"use strict";
// Which rows may stand in one figure: the rule of `set/figures/hold.rs`, over the rows that filters
// leave. Each axis on which they differ is shown by the figure, or held at one place.

gpuio.hold = (() => {
  const { data } = gpuio;

  const places = (axis, rows) => [...new Set(rows.map((row) => axis.of[row]))].sort((a, b) => a - b);

  // Whether a mark has rows at several places of an axis, rows of another `apart` being another mark.
  const split = (axis, shown, rows, apart) => {
    const marks = new Map();
    return rows.some((row) => {
      const mark = [...shown.map((one) => one.of[row]), apart(row)].join("/");
      if (!marks.has(mark)) marks.set(mark, axis.of[row]);
      return marks.get(mark) !== axis.of[row];
    });
  };

  const DIFFER = {
    load: (axis, _, rows) => places(axis, rows).length > 1,
    "came along": (axis, shown, rows) => split(axis, shown, rows, () => 0),
    job: (axis, shown, rows) => split(axis, shown, rows, (row) => data.figures.jobs[row][0]),
    name: () => false,
  };

  // Whether rows differ on an axis in a way that marks of these axes would hide.
  const differ = (axis, keys, rows) => DIFFER[axis.role](axis, keys.map((key) => data.axes.get(key)), rows);

  // The rows that a figure draws, and what it holds. `chosen` has words by key.
  const rows = (all, keys, chosen) => {
    let left = all;
    const held = [];
    for (const axis of data.axes.values()) {
      if (keys.includes(axis.key) || !differ(axis, keys, left)) continue;
      const offered = places(axis, left);
      const count = (place) => left.filter((row) => axis.of[row] === place).length;
      let place = axis.words.indexOf(chosen.get(axis.key));
      if (!offered.includes(place)) place = offered.reduce((best, one) => (count(one) > count(best) ? one : best));
      left = left.filter((row) => axis.of[row] === place);
      held.push({ axis, offered, place });
    }
    return { rows: left, held };
  };

  // What is held, behind a figure's name: paper has no controls.
  const caption = (held) => held.map(({ axis, place }) =>
    ` · ${axis.numbers || axis.key === "depth" ? `${axis.label} ` : ""}${axis.words[place]}`).join("");

  // A choice for each axis that is held.
  const controls = (held, chosen, redo) => held.map(({ axis, offered, place }) =>
    gpuio.axisPlot.select(`one ${axis.label}`, offered.map((one) => [axis.words[one], axis.words[one]]), axis.words[place],
      (word) => { chosen.set(axis.key, word); redo(); }));

  // What the axis of depths does not tell of rows whose depth gpuio chose.
  const depth = (of) => {
    const own = of.filter((row) => data.figures.own_depth[row]);
    const found = [...new Set(own.map((row) => data.value("in_flight", row)))].sort((a, b) => a - b);
    return found.length ? `at depth ${found.join(", ")}` : "";
  };

  // Whether such depths differ from mark to mark.
  const depthsDiffer = (of) => new Set(of.map((row) => data.value("in_flight", row))).size > 1
    && of.some((row) => data.figures.own_depth[row]);

  const DEPTHS = " Depths (I/Os in flight per thread) were chosen automatically and differ: each mark says its own. "
    + "For one depth on all, give the run or sweep a --depth.";

  return { rows, differ, places, caption, controls, depth, depthsDiffer, DEPTHS };
})();
