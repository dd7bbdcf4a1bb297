"use strict";
// Two axes at once: a table whose cells are coloured by their figure. It is its own table for
// screen readers.

gpuio.heat = (() => {
  const { make, data } = gpuio;
  const { full, print } = gpuio.format;
  const MOST = 40;

  // Whether a grid has two cells in some line or column: others say nothing.
  const shares = (pair, chosen) => {
    const { rows } = gpuio.hold.rows(data.shown(), pair, chosen);
    const ofs = pair.map((key) => data.axes.get(key).of);
    const cells = [...new Map(rows.map((row) => [ofs.map((of) => of[row]).join("/"), row])).values()];
    return ofs.some((of) => new Set(cells.map((row) => of[row])).size < cells.length);
  };

  // The first pair of these axes whose grid says something, or the first pair.
  const choose = (axes, chosen) => {
    const order = ["drive", "gpu", "block", "threads", "depth", "path", "direction", "job"];
    const keys = axes.map((axis) => axis.key);
    const found = [...order.filter((key) => keys.includes(key)), ...keys.filter((key) => !order.includes(key))].slice(0, 6);
    if (found[0] !== "drive" || found[1] !== "gpu") found.sort((a, b) => late(a) - late(b));
    const pairs = found.flatMap((one, nth) => found.slice(nth + 1).map((other) => [one, other]));
    return pairs.find((pair) => shares(pair, chosen)) || found;
  };
  const late = (key) => (["drive", "gpu"].includes(key) ? 1 : 0);

  const cell = (rows, figure, low, high, own) => {
    const values = data.whole(figure.key, rows);
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
    const medians = [...at.values()].map((rows) => data.whole(figure.key, rows))
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
      const [first, second] = choose(axes, chosen);
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
      // A grid that was asked for is drawn.
      if (x === null && y === null && !shares([across, down], chosen)) {
        controls.replaceChildren();
        area.replaceChildren();
        head.textContent = "Two axes at once";
        note.textContent = "Not drawn: no load was run at two values of an axis.";
        return;
      }
      head.textContent = `Two axes at once${gpuio.hold.caption(drawn.held)}`;
      controls.replaceChildren(
        gpuio.axisPlot.select("figure", data.figures.figures.map((one) => [one.key, one.label]), key, set((value) => { key = value; })),
        gpuio.axisPlot.select("across", listed, across, set((value) => { x = value; })),
        gpuio.axisPlot.select("down", listed, down, set((value) => { y = value; })),
        ...gpuio.hold.controls(drawn.held, chosen, redraw));
      draw(area, data.axes.get(across), data.axes.get(down), data.columns.get(key), drawn.rows);
      const drives = valid("gpu") && valid("drive") ? "" : " GPU × drive: shown rows have one GPU set or one drive.";
      const depths = gpuio.hold.depthsDiffer(drawn.rows) ? gpuio.hold.DEPTHS : "";
      note.textContent = `Each cell is one load: the median of its runs.${data.partly([key])}${depths}${drives}`;
    };
    return redraw;
  };

  return { create };
})();
