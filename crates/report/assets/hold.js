"use strict";
// Selects the rows of one figure: the rule of `set/figures/fix.rs`, on the rows that pass the
// filters. Each axis on which they differ is shown by the figure, or fixed at one value.

gpuio.hold = (() => {
  const { data } = gpuio;

  const places = (axis, rows) => [...new Set(rows.map((row) => axis.of[row]))].sort((a, b) => a - b);

  // Whether a mark has rows with several values of an axis.
  const split = (axis, shown, rows) => {
    const marks = new Map();
    return rows.some((row) => {
      const mark = shown.map((one) => one.of[row]).join("/");
      if (!marks.has(mark)) marks.set(mark, axis.of[row]);
      return marks.get(mark) !== axis.of[row];
    });
  };

  const DIFFER = {
    load: (axis, _, rows) => places(axis, rows).length > 1,
    "came along": split,
    name: () => false,
  };

  // Whether rows differ on an axis in a way that marks of these axes would hide.
  const differ = (axis, keys, rows) => DIFFER[axis.role](axis, keys.map((key) => data.axes.get(key)), rows);

  // The rows that a figure draws, and its fixed axes. `chosen` has values by key.
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

  // The fixed values, after a figure's name, because paper has no controls.
  const caption = (held) => held.map(({ axis, place }) =>
    ` · ${axis.numbers || axis.key === "depth" ? `${axis.label} ` : ""}${axis.words[place]}`).join("");

  // A control for each fixed axis.
  const controls = (held, chosen, redo) => held.map(({ axis, offered, place }) =>
    gpuio.axisPlot.select(`one ${axis.label}`, offered.map((one) => [axis.words[one], axis.words[one]]), axis.words[place],
      (word) => { chosen.set(axis.key, word); redo(); }));

  // The depths of rows whose depth gpuio chose.
  const depth = (of) => {
    const own = of.filter((row) => data.figures.own_depth[row]);
    const found = [...new Set(own.map((row) => data.value("in_flight", row)))].sort((a, b) => a - b);
    return found.length ? `at depth ${found.join(", ")}` : "";
  };

  // Whether such depths differ from mark to mark.
  const depthsDiffer = (of) => new Set(of.map((row) => data.value("in_flight", row))).size > 1
    && of.some((row) => data.figures.own_depth[row]);

  const DEPTHS = " Automatic depths differ: each mark shows its own.";

  // Once above all plots, what the notes below them are short for.
  const tellDepths = () => {
    const own = data.figures.own_depth.some((one, row) => one && data.value("in_flight", row) !== data.value("in_flight", 0));
    const place = document.getElementById("depths");
    if (own && place) place.textContent = " Depths (I/Os in flight per thread) were chosen automatically and differ; to use one depth for all, set --depth.";
  };

  return { rows, differ, places, caption, controls, depth, depthsDiffer, tellDepths, DEPTHS };
})();
