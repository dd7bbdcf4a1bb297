"use strict";
// The rows of the set, which of them are shown, and the listeners to changes.

gpuio.data = (() => {
  const block = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = block("figures");
  if (figures.si) gpuio.format.si();
  const lazy = {};
  // Large blocks are read on first use.
  const later = (id) => () => {
    if (!(id in lazy)) lazy[id] = block(id);
    return lazy[id];
  };

  const axes = new Map(figures.axes.map((axis) => [axis.key, axis]));
  const columns = new Map(figures.figures.map((figure) => [figure.key, figure]));
  const all = Array.from({ length: figures.rows }, (_, row) => row);
  const hidden = new Map();
  let needle = "";
  let shown = all;
  const listeners = [];

  const refresh = () => {
    const sieves = [...hidden].filter(([, places]) => places.size > 0);
    const word = needle.toLowerCase();
    shown = all.filter((row) => {
      const kept = sieves.every(([key, places]) => !places.has(axes.get(key).of[row]));
      return kept && (word === "" || figures.names[row].toLowerCase().includes(word));
    });
    listeners.forEach((listener) => listener());
  };

  // Shows or hides the rows with one value of an axis.
  const show = (key, place, yes) => {
    if (!hidden.has(key)) hidden.set(key, new Set());
    if (yes) hidden.get(key).delete(place);
    else hidden.get(key).add(place);
    refresh();
  };

  const search = (text) => {
    needle = text;
    refresh();
  };

  // A row's value on an axis, as text.
  const word = (key, row) => axes.get(key).words[axes.get(key).of[row]];
  const value = (key, row) => columns.get(key).values[row];

  // The values of an axis among shown rows, in order.
  const places = (key) => {
    const of = axes.get(key).of;
    return [...new Set(shown.map((row) => of[row]))].sort((a, b) => a - b);
  };

  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };

  // The values of a figure, where each of these runs of a load has it: a median of some of them
  // would pass for one of all. Else none, as in the table.
  const whole = (key, rows) => {
    const values = rows.map((row) => value(key, row));
    return values.includes(null) ? [] : values;
  };

  // The shown rows of loads each of whose runs has a figure.
  const complete = (key) => {
    const lacking = new Set(shown.filter((row) => value(key, row) === null).map((row) => figures.point_of[row]));
    return shown.filter((row) => !lacking.has(figures.point_of[row]));
  };

  // How many loads have a figure in some of their shown runs only, as a note.
  const partly = (keys) => {
    const loads = new Set(keys.flatMap((key) => {
      const rows = new Set(complete(key));
      return shown.filter((row) => value(key, row) !== null && !rows.has(row));
    }).map((row) => figures.point_of[row]));
    const of = loads.size === 1 ? "1 load, not every run of which has" : `${loads.size} loads, not every run of which has`;
    return loads.size ? ` Left out: ${of} this figure.` : "";
  };

  // A number needs the name of its axis.
  const told = (key, row) => (axes.get(key).numbers ? `${axes.get(key).label} ` : "") + word(key, row);

  // Groups rows by their values on some axes, in the order of the rows.
  const groups = (keys, rows) => {
    const found = new Map();
    for (const row of rows) {
      const name = keys.map((key) => told(key, row)).join(", ");
      if (!found.has(name)) found.set(name, []);
      found.get(name).push(row);
    }
    return found;
  };

  // Of some axes, those on which shown rows differ.
  const varying = (keys) => keys.filter((key) => places(key).length > 1);

  return {
    figures, axes, columns, word, value, whole, complete, partly, places, median, groups, varying, show, search,
    spreads: later("spreads"),
    series: later("series"),
    shown: () => shown,
    isHidden: (key, place) => hidden.has(key) && hidden.get(key).has(place),
    changed: (listener) => listeners.push(listener),
  };
})();

// Elements, with text that is never markup.
gpuio.make = (name, attributes, ...inside) => {
  const svg = ["svg", "g", "rect", "line", "text", "title", "path", "polyline", "circle"].includes(name);
  const element = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value);
    }
  }
  element.append(...inside.filter((one) => one !== null && one !== undefined));
  return element;
};

// Colours: one for each path, different ones for all paths of a page (`set/colours.rs`).
gpuio.colour = (() => {
  const PALETTE = 8;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const known = new Map(gpuio.data.figures.colours);
  const path = (name) => css("--p" + (known.get(name) ?? 5));
  const paint = () => {
    for (const element of document.querySelectorAll("[data-path]")) {
      element.style.setProperty("--mine", path(element.dataset.path));
    }
  };
  // The n-th of several lines that have no path of their own, and how often its colour was used.
  const nth = (n) => css("--p" + (n % PALETTE));
  const again = (n) => Math.floor(n / PALETTE);
  return { css, path, nth, again, paint };
})();
