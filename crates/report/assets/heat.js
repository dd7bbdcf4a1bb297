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

  const cell = (rows, figure, low, high, own) => {
    const values = rows.map((row) => data.value(figure.key, row)).filter((value) => value !== null);
    if (!values.length) return make("td", { class: "n" }, "-");
    const value = data.median(values);
    const share = high > low ? (value - low) / (high - low) : 1;
    const spread = values.length > 1
      ? `median of ${values.length}: ${print(figure.unit, Math.min(...values))} to ${print(figure.unit, Math.max(...values))}` : "one row";
    const at = own ? gpuio.hold.depth(rows) : "";
    const made = make("td", { class: share > 0.55 ? "n dark" : "n", title: [spread, at].filter(Boolean).join(", "), tabindex: "0" },
      full(figure.unit, value), at ? make("small", {}, at) : null);
    made.style.setProperty("--share", `${Math.round(8 + share * 80)}%`);
    return made;
  };

  const draw = (area, x, y, figure, rows) => {
    const [columns, lines] = [x, y].map((axis) => gpuio.hold.places(axis, rows).slice(0, MOST));
    const own = gpuio.hold.depthsDiffer(rows);
    const at = new Map();
    for (const row of rows) {
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
      ...columns.map((column) => cell(at.get(`${place}/${column}`) || [], figure, low, high, own)))));
    const table = make("table", { class: "heat" }, make("caption", { class: "unseen" },
      `${figure.label} by ${y.label} and ${x.label}`), make("thead", {}, head), body);
    const box = make("div", { class: "scroll", tabindex: "0" }, table);
    box.picture = () => gpuio.picture.ofTable(table);
    area.replaceChildren(box);
  };

  const create = (host) => {
    let [x, y, key] = [null, null, "throughput"];
    const chosen = new Map();
    const head = make("figcaption", {}, "Two axes at once");
    const controls = make("div", { class: "controls" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(head, controls, area, note);
    const redraw = () => {
      const axes = [...data.axes.values()].filter((axis) => data.places(axis.key).length > 1 && axis.role !== "name");
      const [first, second] = choose(axes);
      const valid = (one) => axes.some((axis) => axis.key === one);
      if (!second) {
        controls.replaceChildren();
        area.replaceChildren();
        head.textContent = "Two axes at once";
        note.textContent = "Not drawn: shown rows differ in fewer than two axes. A GPU × drive map needs runs of each GPU with each drive.";
        return;
      }
      const [across, down] = [valid(x) ? x : first, valid(y) ? y : second];
      const listed = axes.map((axis) => [axis.key, axis.label]);
      const set = (change) => (value) => { change(value); redraw(); };
      const drawn = gpuio.hold.rows(data.shown(), [across, down], chosen);
      head.textContent = `Two axes at once${gpuio.hold.caption(drawn.held)}`;
      controls.replaceChildren(
        gpuio.axisPlot.select("figure", data.figures.figures.map((one) => [one.key, one.label]), key, set((value) => { key = value; })),
        gpuio.axisPlot.select("across", listed, across, set((value) => { x = value; })),
        gpuio.axisPlot.select("down", listed, down, set((value) => { y = value; })),
        ...gpuio.hold.controls(drawn.held, chosen, redraw));
      draw(area, data.axes.get(across), data.axes.get(down), data.columns.get(key), drawn.rows);
      const drives = valid("gpu") && valid("drive") ? "" : " GPU × drive: shown rows have one GPU set or one drive.";
      const depths = gpuio.hold.depthsDiffer(drawn.rows) ? gpuio.hold.DEPTHS : "";
      note.textContent = `Each cell is one load: the median of its runs.${depths}${drives}`;
    };
    return redraw;
  };

  return { create };
})();
