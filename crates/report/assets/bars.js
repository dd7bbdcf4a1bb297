"use strict";
// Compares paths: the same load on each, one bar per path, its ceiling as a mark. Paths whose
// depth was set to different numbers ran different loads; a depth that gpuio chose is shown at its
// bar.

gpuio.bars = (() => {
  const { make, data } = gpuio;
  const MOST = 10;

  const load = () => [...data.axes.values()].filter((axis) => axis.role === "load" && axis.key !== "path");

  const title = (rows) => {
    const word = (key) => data.word(key, rows[0]);
    const mixed = word("load").includes("rw") ? `, ${word("direction")}s` : "";
    const depth = word("depth") === "automatic" ? "automatic depth" : `depth ${word("depth")}`;
    const others = load().filter((axis) => !["load", "direction", "block", "threads", "depth"].includes(axis.key)
      && data.places(axis.key).length > 1).map((axis) => `, ${axis.label} ${word(axis.key)}`);
    return `${word("load")}${mixed} ${word("block")}, ${word("threads")} ${word("threads") === "1" ? "thread" : "threads"}, ${depth}${others.join("")}`;
  };

  // One group for each load, one bar for each path; what came along and differs on a path has bars
  // of its own.
  const groups = () => {
    const keys = load().map((axis) => axis.key);
    return [...data.groups(keys, data.shown()).values()].map((rows) => {
      const apart = [...data.axes.values()].filter((axis) => axis.role !== "load" && gpuio.hold.differ(axis, ["path"], rows));
      const several = gpuio.hold.depthsDiffer(rows);
      const paths = [...data.groups(["path", ...apart.map((axis) => axis.key)], rows)].map(([name, of]) =>
        ({ path: data.word("path", of[0]), rows: of, name: several ? `${name} ${gpuio.hold.depth(of)}` : name }));
      return { title: title(rows), several, paths };
    }).filter((group) => new Set(group.paths.map(({ path }) => path)).size > 1)
      .sort((a, b) => b.paths.length - a.paths.length);
  };

  // Why there is no group, and what is needed for one.
  const why = () => {
    const shown = data.shown();
    const paths = data.places("path");
    if (paths.length < 2) return "Not drawn: shown rows have one path. This plot needs the same load on two paths.";
    const of = (axis, path) => new Set(shown.filter((row) => data.axes.get("path").of[row] === path).map((row) => axis.of[row]));
    const apart = load().filter((axis) => {
      const sets = paths.map((path) => of(axis, path));
      return sets.every((one, nth) => sets.slice(nth + 1).every((other) => ![...one].some((place) => other.has(place))));
    }).map((axis) => axis.label);
    const words = apart.length ? apart.join(", ") : "the whole of their loads";
    return `Not drawn: no two paths ran the same load; they differ in ${words}. Run the paths with the same values of these.`;
  };

  const create = (host) => {
    let key = "throughput";
    const controls = make("div", { class: "controls" });
    const area = make("div", { class: "bars" });
    const note = make("p", { class: "quiet" });
    host.append(make("figcaption", {}, "Path against path"), controls, area, note);
    const redraw = () => {
      const choices = data.figures.figures.map((one) => [one.key, one.label]);
      controls.replaceChildren(gpuio.axisPlot.select("figure", choices, key, (value) => { key = value; redraw(); }));
      const all = groups();
      const figure = data.columns.get(key);
      const width = area.clientWidth || 800;
      area.replaceChildren();
      for (const group of all.slice(0, MOST)) {
        const bars = group.paths.map((one) => gpuio.bar.of(figure, one.rows, one.name));
        const part = make("div", {}, make("h4", {}, group.title));
        gpuio.bar.draw(part, `${figure.label} by path: ${group.title}`, bars, width, group.title);
        area.append(part);
      }
      const rest = all.length > MOST ? ` ${all.length - MOST} more loads are not shown: filter the rows.` : "";
      const marks = all.some((group) => group.paths.some(({ rows }) => rows.some((row) => data.value("ceiling", row) !== null)));
      const depths = all.some((group) => group.several) ? gpuio.hold.DEPTHS : "";
      note.textContent = all.length
        ? `Medians of the runs of one load.${marks && key === "throughput" ? ` ${gpuio.bar.MARK}` : ""}${depths}${rest}` : why();
    };
    return redraw;
  };

  return { create };
})();
