"use strict";
// Two axes at once: a table whose cells are coloured by their figure. It is its own table for
// screen readers.

gpuio.heat = (() => {
  const { make, data } = gpuio;
  const { full, print } = gpuio.format;
  const MOST = 40;

  const choose = (axes) => {
    const has = (key) => axes.some((axis) => axis.key === key);
    if (has("gpu") && has("drive")) return ["drive", "gpu"];
    const order = ["block", "threads", "depth", "path", "drive", "gpu", "direction", "job"];
    const found = order.filter(has);
    return [found[0], found[1] || (axes.find((axis) => axis.key !== found[0]) || {}).key];
  };

  const cell = (rows, figure, low, high) => {
    const values = rows.map((row) => data.value(figure.key, row)).filter((value) => value !== null);
    if (!values.length) return make("td", { class: "n" }, "-");
    const value = data.median(values);
    const share = high > low ? (value - low) / (high - low) : 1;
    const spread = values.length > 1
      ? `median of ${values.length}: ${print(figure.unit, Math.min(...values))} to ${print(figure.unit, Math.max(...values))}` : "one row";
    const made = make("td", { class: share > 0.55 ? "n dark" : "n", title: spread, tabindex: "0" }, full(figure.unit, value));
    made.style.setProperty("--share", `${Math.round(8 + share * 80)}%`);
    return made;
  };

  const draw = (area, x, y, figure) => {
    const [columns, lines] = [data.places(x.key).slice(0, MOST), data.places(y.key).slice(0, MOST)];
    const at = new Map();
    for (const row of data.shown()) {
      const key = `${y.of[row]}/${x.of[row]}`;
      if (!at.has(key)) at.set(key, []);
      at.get(key).push(row);
    }
    const medians = [...at.values()].map((rows) =>
      rows.map((row) => data.value(figure.key, row)).filter((value) => value !== null))
      .filter((values) => values.length).map(data.median);
    const [low, high] = [Math.min(...medians), Math.max(...medians)];
    const head = make("tr", {}, make("th", { scope: "col" }, `${y.label} \\ ${x.label}`),
      ...columns.map((place) => make("th", { scope: "col", class: "n" }, x.words[place])));
    const body = make("tbody", {}, ...lines.map((place) => make("tr", {},
      make("th", { scope: "row" }, y.words[place]),
      ...columns.map((column) => cell(at.get(`${place}/${column}`) || [], figure, low, high)))));
    const table = make("table", { class: "heat" }, make("caption", { class: "unseen" },
      `${figure.label} by ${y.label} and ${x.label}`), make("thead", {}, head), body);
    area.replaceChildren(make("div", { class: "scroll", tabindex: "0" }, table));
  };

  const create = (host) => {
    let [x, y, key] = [null, null, "rate"];
    const controls = make("div", { class: "controls" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(make("figcaption", {}, "Two axes at once"), controls, area, note);
    const redraw = () => {
      const axes = [...data.axes.values()].filter((axis) => data.places(axis.key).length > 1 && axis.key !== "record");
      const [first, second] = choose(axes);
      const valid = (one) => axes.some((axis) => axis.key === one);
      if (!second) {
        controls.replaceChildren();
        area.replaceChildren();
        note.textContent = "Shown rows differ in fewer than two axes. A GPU × drive map needs runs of each GPU against each drive.";
        return;
      }
      const [across, down] = [valid(x) ? x : first, valid(y) ? y : second];
      const listed = axes.map((axis) => [axis.key, axis.label]);
      const set = (change) => (value) => { change(value); redraw(); };
      controls.replaceChildren(
        gpuio.axisPlot.select("figure", data.figures.figures.map((one) => [one.key, one.label]), key, set((value) => { key = value; })),
        gpuio.axisPlot.select("across", listed, across, set((value) => { x = value; })),
        gpuio.axisPlot.select("down", listed, down, set((value) => { y = value; })));
      draw(area, data.axes.get(across), data.axes.get(down), data.columns.get(key));
      const drives = valid("gpu") && valid("drive") ? "" : " GPU × drive: shown rows are of one GPU set or one drive.";
      note.textContent = `Medians of all shown rows in each cell.${drives}`;
    };
    return redraw;
  };

  return { create };
})();
