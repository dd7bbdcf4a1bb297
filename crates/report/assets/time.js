"use strict";
// Time series of one job: what shares a unit shares a plot, and all plots share the time axis.

gpuio.time = (() => {
  const { make, data } = gpuio;
  const NAMES = { "B/s": "throughput", "1/s": "I/Os per second", ns: "latency in each interval",
    "%": "share", W: "power" };
  const TINTS = { read: 0, write: 1, reads: 0, writes: 1, p50: 2, p99: 3, largest: 5 };
  let count = 0;

  const jobs = () => {
    const series = data.series();
    const found = new Map();
    for (const row of data.shown()) {
      const key = data.figures.jobs[row].join("/");
      if (series[key] && !found.has(key)) found.set(key, data.figures.names[row]);
    }
    return found;
  };

  const draw = (area, job, sync) => {
    const units = new Map();
    for (const line of job.lines) {
      if (!units.has(line.unit)) units.set(line.unit, []);
      units.get(line.unit).push(line);
    }
    area.replaceChildren();
    let nth = 0;
    for (const [unit, lines] of units) {
      const host = make("div");
      area.append(make("h4", {}, NAMES[unit] || unit), host);
      const values = lines.flatMap((line) => line.values).filter((value) => value > 0);
      const wide = unit === "ns" && Math.max(...values) / Math.min(...values) > 30;
      gpuio.line.draw(host, {
        title: `${NAMES[unit] || unit} over time`, height: 170, sync,
        x: { values: job.seconds, label: "seconds after the ramp", unit: "s" },
        y: { unit, label: "", zero: true, log: wide ? 10 : 0 },
        lines: lines.map((line) => ({ label: line.label,
          values: wide ? line.values.map((value) => value || null) : line.values,
          colour: gpuio.colour.nth(TINTS[line.label] ?? (nth += 1) + 5) })),
      });
    }
  };

  const create = (host) => {
    const controls = make("div", { class: "controls" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(make("figcaption", {}, "Over time"), controls, area, note);
    let chosen = null;
    count += 1;
    const sync = `time-${count}`;
    const redraw = () => {
      const found = jobs();
      if (!found.size) {
        controls.replaceChildren();
        area.replaceChildren();
        note.textContent = "No shown row has a time series.";
        return;
      }
      const key = found.has(chosen) ? chosen : found.keys().next().value;
      // A list of thousands is of no use: the filters make it short.
      const listed = [...found].slice(0, 500);
      controls.replaceChildren(gpuio.axisPlot.select("job", listed, key, (value) => { chosen = value; redraw(); }));
      draw(area, data.series()[key], sync);
      note.textContent = "One point per interval of the record; before 0 is the ramp, which does not count; the last "
        + "interval may be short. "
        + "Figures here are rounded to four digits."
        + (found.size > listed.length ? ` ${listed.length} of ${found.size} jobs are listed.` : "");
    };
    return redraw;
  };

  return { create };
})();
