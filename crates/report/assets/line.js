"use strict";
// One line plot: drawn by uPlot, readable by mouse, keyboard and table.

gpuio.line = (() => {
  const { make } = gpuio;
  const { print, full, ticks, wide } = gpuio.format;
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]];
  const tip = () => document.getElementById("tip");
  const say = (text) => { document.getElementById("say").textContent = text; };

  // The labels of ticks without overlaps; the most important first.
  const apart = (plot, ticks) => {
    const places = ticks.map((tick, nth) => ({ nth, first: tick.first, half: tick.text.length * 3.5 + 4,
      at: plot.valToPos(tick.at, "x") }));
    const kept = [];
    for (const one of [...places].sort((a, b) => Boolean(b.first) - Boolean(a.first) || a.nth - b.nth)) {
      if (kept.every((other) => Math.abs(other.at - one.at) >= other.half + one.half)) kept.push(one);
    }
    const shown = new Set(kept.map(({ nth }) => nth));
    return ticks.map((tick, nth) => (shown.has(nth) ? tick.text : null));
  };

  // The ends of an axis, whether its steps are factors, and its ticks, about so many.
  const scale = (axis, values, about) => {
    if (axis.words) return { range: [-0.5, values.length - 0.5] };
    const some = values.filter((value) => value !== null && Number.isFinite(value));
    const log = axis.log ?? wide(some);
    const low = axis.zero && !log ? Math.min(0, ...some) : Math.min(...some);
    const [from, to] = some.length ? [low, Math.max(...some)] : [0, 1];
    if (axis.ticks) {
      const out = log ? (from === to ? 10 : 1.06) : (to - from || Math.abs(to) || 1) * 0.04;
      return { log, range: log ? [from / out, to * out] : [from - out, to + out] };
    }
    const found = ticks(axis.unit, from, to, log, about);
    // A vertical axis ends with ticks, a horizontal one with its values.
    return axis.zero === undefined ? { log, range: [from, to], ticks: found.filter(({ at }) => at >= from && at <= to) }
      : { log, range: [found[0].at, found.at(-1).at], ticks: found };
  };

  const distribution = ({ log, range }) => ({ distr: log ? 3 : 1, range });
  const LOG = "log scale";
  const QUANTITY = { "bytes/s": "throughput", "1/s": "IOPS", ns: "latency" };
  const labelled = (name, log) => name && log ? `${name} (${LOG})` : name || (log ? LOG : "");

  const extent = (lines) => lines.flatMap((line) =>
    [...line.values, ...(line.low || []), ...(line.high || [])]);

  // Whiskers from the lowest to the highest value at a place.
  const whiskers = (spec) => (plot) => {
    const draw = plot.ctx;
    spec.lines.forEach((line, nth) => {
      if (!line.low || !plot.series[nth + 1].show) return;
      draw.save();
      draw.strokeStyle = line.colour;
      draw.globalAlpha = 0.55;
      draw.lineWidth = 1.5 * devicePixelRatio;
      spec.x.values.forEach((x, at) => {
        if (line.low[at] == null || line.low[at] === line.high[at]) return;
        const across = plot.valToPos(x, "x", true);
        draw.beginPath();
        draw.moveTo(across, plot.valToPos(line.low[at], "y", true));
        draw.lineTo(across, plot.valToPos(line.high[at], "y", true));
        draw.stroke();
      });
      draw.restore();
    });
  };

  const isParted = (line) => Boolean(line.parted && line.parted.some((names) => names.length));

  // The spaces between marks that no line joins, as uPlot takes them.
  const between = (plot, spec, line) => {
    const known = spec.x.values.map((_, at) => at).filter((at) => line.values[at] != null);
    const at = (place) => Math.round(plot.valToPos(spec.x.values[place], "x", true));
    return known.slice(1).map((place, nth) => [known[nth], place])
      .filter(([from, to]) => line.parted.slice(from + 1, to + 1).some((names) => names.length))
      .map(([from, to]) => [at(from), at(to)]);
  };

  const options = (spec, width, height, hooks) => {
    const ink = gpuio.colour.css("--quiet");
    const grid = { stroke: gpuio.colour.css("--grid"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const axis = (more) => ({ stroke: ink, grid, ticks: { ...grid, size: 4 }, font, labelFont: font, space: 0, ...more });
    const fixed = (found) => ({ splits: () => found.map(({ at }) => at), values: () => found.map(({ text }) => text),
      filter: (_, splits) => splits });
    const [across, up] = [scale(spec.x, spec.x.values, width / 100), scale(spec.y, extent(spec.lines), Math.max(3, height / 56))];
    const label = spec.x.label && across.log && !spec.x.ticks?.some((tick) => tick.first) ? `${spec.x.label} (${LOG})` : spec.x.label;
    const shown = spec.x.ticks || across.ticks;
    const x = axis({ ...fixed(shown), label, labelSize: label ? 20 : 0, size: 34 });
    const turned = spec.x.words && shown.length * spec.x.widest > width - 80;
    if (turned) Object.assign(x, { rotate: 40, size: 24 + spec.x.widest * 0.6 });
    else x.values = (plot) => apart(plot, shown);
    const widest = Math.max(...up.ticks.map(({ text }) => text.length));
    const name = labelled(QUANTITY[spec.y.unit], up.log);
    const labelSize = name ? 18 : 0;
    // Plots below one another have the same time at the same place.
    const y = axis({ ...fixed(up.ticks), size: Math.max(90, 14 + widest * 7 + labelSize) - labelSize,
      label: name, labelSize });
    return {
      width, height, legend: { show: false },
      scales: { x: { time: false, ...distribution(across) }, y: distribution(up) },
      axes: [x, y],
      series: [{}, ...spec.lines.map((line) => ({
        label: line.label, stroke: line.colour, width: 2, dash: DASHES[(line.dash || 0) % 5],
        spanGaps: !line.gaps && !isParted(line), show: line.show !== false,
        gaps: (plot, _, from, to, gaps) => (isParted(line) ? between(plot, spec, line) : gaps),
        paths: spec.x.words ? () => null : spec.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: gpuio.picture.dots(spec, width),
          size: spec.x.words ? 10 : 7,
          fill: spec.x.words && line.dash ? gpuio.colour.css("--card") : line.colour },
      }))],
      cursor: {
        drag: { x: false, y: false }, focus: { prox: 24 },
        sync: spec.sync ? { key: spec.sync, scales: ["x", null] } : undefined,
      },
      focus: { alpha: 0.35 },
      hooks: { draw: [whiskers(spec)], ...hooks },
    };
  };

  const placeText = (spec, at) => {
    const tick = (spec.x.ticks || []).find((one) => one.at === spec.x.values[at]);
    return tick ? tick.text : (spec.x.text || ((value) => print(spec.x.unit, value)))(spec.x.values[at]);
  };

  // The place whose value a line has at a place: its own, or of a line whose values are of intervals
  // and which has no place here (undefined, while null is not known), the end of the interval.
  const holding = (line, at) => {
    let place = at;
    while (line.values[place] === undefined && place + 1 < line.values.length) place += 1;
    return place;
  };

  const reading = (spec, line, at) => {
    const low = line.low ? line.low[at] : null;
    const range = low != null && low !== line.high[at]
      ? ` (${print(spec.y.unit, low)} to ${print(spec.y.unit, line.high[at])})` : "";
    const depth = line.depths && line.depths[at] ? `, ${line.depths[at]}` : "";
    return full(spec.y.unit, line.values[at]) + range + depth;
  };

  const fillTip = (spec, plot, at, focused) => {
    const box = tip();
    box.replaceChildren(make("strong", {}, `${spec.x.name || spec.x.label}: ${placeText(spec, at)}`));
    spec.lines.forEach((line, nth) => {
      const place = holding(line, at);
      if (!plot.series[nth + 1].show || line.values[place] == null) return;
      const dot = make("span", { class: "dot" });
      dot.style.background = line.colour;
      const mark = nth === focused ? { class: "here" } : {};
      box.append(make("div", mark, dot, make("span", {}, line.label),
        make("b", {}, reading(spec, line, place))));
    });
    box.hidden = false;
    const frame = plot.over.getBoundingClientRect();
    const left = frame.left + plot.valToPos(spec.x.values[at], "x") + 14;
    const room = document.documentElement.clientWidth - box.offsetWidth - 8;
    box.style.left = `${Math.max(4, Math.min(left, room))}px`;
    box.style.top = `${Math.max(4, frame.top + 8)}px`;
  };

  // The same figures as a table.
  const table = (spec) => {
    const body = make("tbody");
    spec.x.values.forEach((_, at) => {
      const cells = spec.lines.map((line) => make("td", { class: "n" }, reading(spec, line, at)));
      body.append(make("tr", {}, make("th", { scope: "row" }, placeText(spec, at)), ...cells));
    });
    const heads = spec.lines.map((line) => make("th", { scope: "col", class: "n" }, line.label));
    const head = make("tr", {}, make("th", { scope: "col" }, spec.x.name || spec.x.label), ...heads);
    return make("table", {}, make("thead", {}, head), body);
  };

  const keys = (spec, plot, host) => {
    let at = -1;
    let line = 0;
    // The next place, in this direction, where a line has a value.
    const next = (from, step) => {
      const most = spec.x.values.length;
      for (let tries = 1; tries <= most; tries += 1) {
        const place = (from + step * tries + most * tries) % most;
        if (spec.lines[line].values[place] != null) return place;
      }
      return Math.max(0, from);
    };
    host.addEventListener("keydown", (event) => {
      const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key] || 0;
      const across = { ArrowUp: -1, ArrowDown: 1 }[event.key] || 0;
      if (event.key === "Escape") tip().hidden = true;
      if (!along && !across) return;
      event.preventDefault();
      line = (line + across + spec.lines.length) % spec.lines.length;
      if (along) at = next(at < 0 && along < 0 ? 0 : at, along);
      else if (at < 0 || spec.lines[line].values[at] == null) at = next(at, 1);
      const top = plot.valToPos(spec.lines[line].values[at], "y");
      plot.setCursor({ left: plot.valToPos(spec.x.values[at], "x"), top: top || 0 });
      fillTip(spec, plot, at, line);
      const one = spec.lines[line];
      say(`${one.label}, ${spec.x.name || spec.x.label} ${placeText(spec, at)}: ${reading(spec, one, at)}`);
    });
    host.addEventListener("blur", () => { tip().hidden = true; });
  };

  const legend = (spec, plot) => spec.lines.map((line, nth) => {
    const sample = make("svg", { class: "swatch", viewBox: "0 0 28 10", "aria-hidden": "true" },
      make("line", { x1: 0, x2: 28, y1: 5, y2: 5, stroke: line.colour, "stroke-width": 3,
        "stroke-dasharray": DASHES[(line.dash || 0) % 5].join(" ") || null }));
    const button = make("button", { type: "button", class: "key", "aria-pressed": "true" }, sample, line.label);
    button.addEventListener("click", () => {
      const show = !plot.series[nth + 1].show;
      plot.setSeries(nth + 1, { show });
      button.setAttribute("aria-pressed", String(show));
    });
    return button;
  });

  // Draws into `host`, replacing its content, and returns the plot.
  const draw = (host, spec) => {
    host.replaceChildren();
    const canvas = make("div", { class: "canvas", tabindex: "0", role: "group",
      "aria-roledescription": "plot", "aria-label": `${spec.title}. ${spec.lines.length} lines, ${spec.x.values.length} points. Arrow keys read the points.` });
    host.append(canvas);
    const hooks = {
      setCursor: [(plot) => {
        const at = plot.cursor.idx;
        if (at === null || at === undefined || plot.cursor.left < 0) return;
        if (canvas.matches(":hover")) fillTip(spec, plot, at, focused);
      }],
      setSeries: [(_, nth) => { focused = nth === null ? -1 : nth - 1; }],
    };
    let focused = -1;
    const data = [spec.x.values, ...spec.lines.map((line) => line.values)];
    const width = Math.max(280, canvas.clientWidth);
    // Low on paper, where two stand side by side.
    const usual = document.documentElement.classList.contains("printing") ? 140 : 280;
    const plot = new uPlot(options(spec, width, spec.height || usual, hooks), data, canvas);
    canvas.addEventListener("mouseleave", () => { tip().hidden = true; });
    keys(spec, plot, canvas);
    const keysRow = make("div", { class: "keys" }, ...legend(spec, plot));
    const details = make("details", {}, make("summary", {}, "Table"));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) {
        details.append(make("div", { class: "scroll", tabindex: "0" }, table(spec)));
      }
    });
    keysRow.hidden = spec.keys === false;
    host.append(keysRow, details);
    // A vector picture: for paper, and for files.
    host.picture = () => gpuio.picture.ofLine(plot, spec);
    new ResizeObserver(() => {
      const now = Math.max(280, canvas.clientWidth);
      if (Math.abs(now - plot.width) > 2) plot.setSize({ width: now, height: plot.height });
    }).observe(canvas);
    return plot;
  };

  return { draw, say };
})();
