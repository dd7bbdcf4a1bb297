"use strict";
// A figure against an axis: one line for each path (and other properties that separate lines).

gpuio.axisPlot = (() => {
  const { make, data } = gpuio;

  // Figures that are drawn together.
  const TOGETHER = [["p50,p99", "latency, p50 and p99"], ["p50,p99,p99_9,max", "latency, p50 to max"]];
  // Properties that separate lines, in the order in which they are tried.
  const APART = ["path", "direction"];

  const select = (label, choices, chosen, change) => {
    const box = make("select", {}, ...choices.map(([value, text]) =>
      make("option", { value, selected: value === chosen }, text)));
    box.addEventListener("change", () => change(box.value));
    return make("label", {}, label, " ", box);
  };

  // Axes to draw against: those on which shown rows differ, numbers first.
  const across = () => {
    const found = [...data.axes.values()].filter((axis) => data.places(axis.key).length > 1);
    return found.sort((a, b) => Boolean(b.numbers) - Boolean(a.numbers));
  };

  // Whether one path has rows at several places of an axis: else the axis says no more than the path.
  const within = (axis) => {
    const of = new Map();
    for (const row of data.shown()) {
      const path = data.word("path", row);
      if (!of.has(path)) of.set(path, new Set());
      of.get(path).add(axis.of[row]);
    }
    return [...of.values()].some((places) => places.size > 1);
  };

  // What a sweep varied, then block, threads, depth; without numbers paths, or else jobs.
  const best = (axes) => {
    const ranks = [...data.figures.varied, "block", "threads", "depth"];
    const numbers = axes.filter((axis) => axis.numbers && within(axis));
    const rank = (axis) => (ranks.includes(axis.key) ? ranks.indexOf(axis.key) : 99);
    const words = ["path", "job"].map((key) => axes.find((axis) => axis.key === key)).find(Boolean);
    return (numbers.sort((a, b) => rank(a) - rank(b))[0] || words || axes[0] || {}).key;
  };

  // Axes that separate lines by default: those within a path, if that gives few lines.
  const FEW = 8;
  const tell = (axis, rows, few) => {
    // Points by path keep their colours.
    const by = data.varying(APART.filter((key) => key === "path" || key !== axis.key));
    for (const one of [...data.figures.varied, "block", "threads", "depth", "load", "settings"]) {
      const other = data.axes.get(one);
      if (!other || by.includes(one) || one === axis.key || !within(other)) continue;
      if (data.groups([...by, one], rows).size <= few) by.push(one);
    }
    return by;
  };

  const places = (axis, rows) => {
    const taken = gpuio.hold.places(axis, rows);
    const numbers = axis.numbers && taken.map((place) => axis.numbers[place]);
    const log = numbers && numbers[0] > 0 && numbers[numbers.length - 1] / numbers[0] >= 8;
    const values = numbers || taken.map((_, nth) => nth);
    const ticks = taken.map((place, nth) => ({ at: values[nth], text: axis.words[place] }));
    const widest = Math.max(...ticks.map((tick) => tick.text.length)) * 7 + 12;
    return { taken, values, log, ticks, widest, label: axis.label, words: !numbers };
  };

  // The colours of paths where each has one line; else every line has a colour of its own.
  const colours = (names, rows) => {
    const paths = new Set(rows.map((of) => data.word("path", of[0])));
    return names.map((_, nth) => (paths.size === names.length
      ? gpuio.colour.path(data.word("path", rows[nth][0])) : gpuio.colour.nth(nth)));
  };

  // Axes whose values follow from others that a plot shows or holds, or only name them.
  const SAID_BY_OTHERS = ["hosts", "settings", "job"];

  // What a row has beyond the axis of a plot and what its line shows, each with its name: marks with
  // other values are not joined by a line.
  const beyond = (axis, row) => [
    ...[...data.axes.values()].filter((one) => one.role === "came along" && !SAID_BY_OTHERS.includes(one.key))
      .map((one) => [one.label, one.of[row]]),
    ...(axis.key === "depth" ? [] : [["depth per thread", data.value("in_flight", row)]]),
  ];

  // For each place of a line in what it differs from the place before, beyond the axis.
  const parted = (rows, axis, taken) => {
    let before = null;
    return taken.map((place) => {
      const row = rows.find((one) => axis.of[one] === place);
      if (row === undefined) return [];
      const own = beyond(axis, row);
      const other = before ? own.filter(([, value], nth) => before[nth][1] !== value).map(([name]) => name) : [];
      before = own;
      return other;
    });
  };

  // For each line and place: median, lowest and highest of its rows, which are of one load.
  const line = (rows, axis, taken, figure, own) => {
    const depths = own && taken.map((place) => gpuio.hold.depth(rows.filter((row) => axis.of[row] === place)));
    const at = new Map(taken.map((place) => [place, []]));
    rows.forEach((row) => at.get(axis.of[row]).push(row));
    const each = taken.map((place) => data.whole(figure, at.get(place)));
    const of = (how) => each.map((values) => (values.length ? how(values) : null));
    return {
      depths, parted: parted(rows, axis, taken),
      values: of(data.median), low: of((v) => Math.min(...v)), high: of((v) => Math.max(...v)),
      most: Math.max(...each.map((values) => values.length)),
    };
  };

  const spec = (keys, axis, apart, chosen) => {
    const some = data.complete(keys[0]);
    const by = apart === "" ? tell(axis, some, FEW / keys.length) : data.varying(APART.filter((key) => key !== axis.key));
    if (apart !== "" && data.axes.has(apart) && !by.includes(apart)) by.push(apart);
    const { rows, held } = gpuio.hold.rows(some, [axis.key, ...by], chosen);
    const x = places(axis, rows);
    const own = gpuio.hold.depthsDiffer(rows);
    // A load that is no mix has its direction in its name.
    const plain = by.includes("load") && rows.every((row) => data.word("load", row).includes(data.word("direction", row)));
    const named = by.filter((key) => gpuio.hold.places(data.axes.get(key), rows).length > 1 && !(plain && key === "direction"));
    const groups = [...data.groups(named, rows)];
    const tints = colours(groups.map(([name]) => name), groups.map(([, of]) => of));
    const seen = new Map();
    const lines = [];
    let most = 1;
    groups.forEach(([name, of], nth) => {
      keys.forEach((key, figure) => {
        const made = line(of, axis, x.taken, key, own);
        most = Math.max(most, made.most);
        // Several figures of one line each have a colour; of several lines, a dash.
        const tinted = groups.length === 1 && keys.length > 1;
        const tint = tinted ? gpuio.colour.nth(figure) : tints[nth];
        const nthOfColour = seen.get(tint) || 0;
        if (figure === keys.length - 1) seen.set(tint, nthOfColour + 1);
        const what = keys.length > 1 ? key.replace("_", ".") : "";
        const label = [name.replace(/^path /, ""), what].filter(Boolean).join(" ") || data.word("path", of[0]);
        lines.push({ label, colour: tint, dash: tinted ? 0 : figure + nthOfColour, ...made });
      });
    });
    const figure = data.columns.get(keys[0]);
    return {
      title: `${figure.label} against ${axis.label}`, x, lines, most, held, own,
      keys: !(axis.key === "path" && groups.length === x.taken.length),
      y: { unit: figure.unit, zero: true, log: figure.unit === "%" ? false : undefined },
    };
  };

  // A line has so many marks at least, or each load has a bar, of so many (`set/plot`).
  const { least, most } = data.figures.bars;
  const BARS = "bars";
  // Loads at most that have bars where nothing else can be drawn.
  const MOST_LONE = 40;

  const marks = (one) => one.values.filter((value) => value !== null).length;
  const few = ({ lines }) => lines.every((one) => marks(one) < least);

  // Bars of each load, several figures of it below one another.
  const loads = (keys) => {
    const found = new Map();
    for (const row of data.complete(keys[0])) {
      const point = data.figures.point_of[row];
      if (!found.has(point)) found.set(point, []);
      found.get(point).push(row);
    }
    return [...found].flatMap(([point, rows]) => keys.map((key, nth) => {
      const name = data.figures.points[point];
      return { ...gpuio.bar.of(data.columns.get(key), rows, nth ? "" : name), told: name,
        what: keys.length > 1 ? key.replace("_", ".") : "", faint: nth > 0 };
    }));
  };

  const create = (host) => {
    let keys = host.dataset.figure === "latency" ? TOGETHER[0][0] : host.dataset.figure;
    let against = null;
    let apart = "";
    const chosen = new Map();
    const head = make("figcaption");
    const controls = make("div", { class: "controls" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(head, controls, area, note);
    const draw = () => {
      const axes = across();
      const key = axes.some((axis) => axis.key === against) ? against : best(axes);
      const list = keys.split(",");
      const made = key && spec(list, data.axes.get(key), apart, chosen);
      const bars = loads(list);
      // Dots alone, each of another load, are no line: more bars are better.
      const lone = made && !made.x.words && made.lines.every((one) => marks(one) < 2);
      const limit = (lone ? MOST_LONE : most) * list.length;
      const barred = against === BARS || key !== against && made && few(made) && bars.length <= limit;
      const figures = data.figures.figures.filter((one) => one.values.some((v) => v !== null));
      const choices = [...TOGETHER, ...figures.map((one) => [one.key, one.label])];
      const redo = (set) => (value) => { set(value); draw(); };
      controls.replaceChildren(
        select("figure", choices, keys, redo((value) => { keys = value; })),
        select("against", [[BARS, "each load, as bars"], ...axes.map((axis) => [axis.key, axis.label])], barred ? BARS : key,
          redo((value) => { against = value; })));
      head.textContent = TOGETHER.find(([value]) => value === keys)?.[1] || data.columns.get(list[0]).label;
      const some = data.complete(list[0]).length > 0;
      const scattered = lone && !barred && against === null;
      if (!key || !some || scattered) {
        area.replaceChildren();
        note.textContent = !some ? `Not drawn: no shown load has this figure.${data.partly(list)}`
          : !key ? "Not drawn: all shown rows have the same value on every axis."
            : "Not drawn: no load was run at two values of an axis, and there are too many for bars.";
        return;
      }
      area.classList.toggle("bars", Boolean(barred));
      if (barred) {
        area.replaceChildren();
        gpuio.bar.draw(area, head.textContent, bars, area.clientWidth || 600);
        note.textContent = [bars.some(({ values }) => values.length > 1) && "Medians of the runs of one load, with their range.",
          gpuio.bar.marked(bars) && gpuio.bar.MARK].filter(Boolean).join(" ") + data.partly(list);
        return;
      }
      controls.append(select("lines", [["", "automatic"], ["path", "by path only"], ...axes.filter((axis) => axis.key !== "path" && axis.key !== key)
        .map((axis) => [axis.key, `by path and ${axis.label}`])], apart, redo((value) => { apart = value; })));
      head.textContent += gpuio.hold.caption(made.held);
      controls.append(...gpuio.hold.controls(made.held, chosen, draw));
      if (made.lines.length > 40) {
        area.replaceChildren();
        note.textContent = `Not drawn: ${made.lines.length} lines are too many to read. Show fewer rows.`;
        return;
      }
      gpuio.line.draw(area, made);
      note.textContent = made.most > 1
        ? `Each point is the median of up to ${made.most} runs of one load; whiskers show the lowest and the highest.` : "";
      const parts = made.x.words ? [] : [...new Set(made.lines.flatMap((one) => one.parted.flat()))];
      if (parts.length) note.textContent += ` Marks that also differ in ${parts.join(", ")} are not joined.`;
      if (made.own) note.textContent += gpuio.hold.DEPTHS;
      note.textContent += data.partly(list);
      if (!made.keys && list.length === 2) note.textContent += ` Filled: ${list[0]}; hollow: ${list[1]}.`;
    };
    return draw;
  };

  return { create, select };
})();
