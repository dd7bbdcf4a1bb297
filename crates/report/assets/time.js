"use strict";
// Time series of one job and of the devices during it: figures with the same unit share a plot, and
// all plots share the time axis.

gpuio.time = (() => {
  const { make, data } = gpuio;
  const NAMES = { "bytes/s": "throughput", "1/s": "I/Os per second", ns: "latency in each interval",
    "%": "share of time", count: "number", B: "memory" };
  const TINTS = { read: 0, write: 1, reads: 0, writes: 1, p50: 2, p99: 3, largest: 5 };
  // Colours of devices, unlike those of the job's own lines.
  const DEVICE_TINTS = [7, 6, 4, 3, 2, 5, 1, 0];
  // Devices of one kind that are shown by default.
  const AT_FIRST = 4;
  // Ends of intervals nearer to each other than this part of an interval are one place.
  const NEAR = 1 / 20;
  let count = 0;

  const jobs = () => {
    const series = data.series().jobs;
    const found = new Map();
    for (const row of data.shown()) {
      const key = data.figures.jobs[row].join("/");
      if (series[key] && !found.has(key)) found.set(key, data.figures.names[row]);
    }
    return found;
  };

  const groupOf = (job) => (job.group ? data.series().groups[job.group] || null : null);

  // The places on the time axis of some clocks, ascending, and for each clock the place of each of
  // its ends. Two ends of one clock never share a place.
  const places = (clocks) => {
    const steps = clocks.flatMap((ends) => (ends.length > 1 ? [(ends.at(-1) - ends[0]) / (ends.length - 1)] : []));
    const near = steps.length ? Math.min(...steps) * NEAR : 0;
    const all = clocks.flatMap((ends, clock) => ends.map((second, end) => ({ second, clock, end })));
    all.sort((a, b) => a.second - b.second);
    const seconds = [];
    const of = clocks.map((ends) => new Array(ends.length));
    let here = new Set();
    for (const { second, clock, end } of all) {
      if (!seconds.length || second - seconds.at(-1) > near || here.has(clock)) {
        seconds.push(second);
        here = new Set();
      }
      here.add(clock);
      of[clock][end] = seconds.length - 1;
    }
    return { seconds, of };
  };

  // A line's values at all places: undefined where its clock has none.
  const spread = (values, of, length) => {
    const out = new Array(length).fill(undefined);
    values.forEach((value, end) => { out[of[end]] = value; });
    return out;
  };

  const most = (device) => {
    const moved = device.lines.filter((line) => line.unit === "bytes/s");
    const lines = moved.length ? moved : device.lines;
    return Math.max(...lines.flatMap((line) => line.values.map((value) => value || 0)));
  };

  // Of each kind those that did most.
  const busiest = (devices) => {
    const kinds = new Map();
    devices.forEach((device, nth) => {
      if (!kinds.has(device.kind)) kinds.set(device.kind, []);
      kinds.get(device.kind).push(nth);
    });
    const first = [...kinds.values()].flatMap((all) =>
      all.sort((a, b) => most(devices[b]) - most(devices[a])).slice(0, AT_FIRST));
    return new Set(first.map((nth) => devices[nth].name));
  };

  // All lines of a job and of the chosen devices, on one clock.
  const together = (job, group, chosen) => {
    const theirs = group ? group.seconds.map((second) => second - job.from) : [];
    const { seconds, of } = places([job.seconds, theirs]);
    const own = group ? "the job: " : "";
    const lines = job.lines.map((line) => ({ unit: line.unit, label: own + line.label, dash: 0, gaps: false,
      colour: gpuio.colour.nth(TINTS[line.label] ?? 6), values: spread(line.values, of[0], seconds.length) }));
    (group ? group.devices : []).forEach((device, nth) => {
      if (!chosen.has(device.name)) return;
      const nths = new Map();
      for (const line of device.lines) {
        nths.set(line.unit, (nths.get(line.unit) || 0) + 1);
        lines.push({ unit: line.unit, label: `${device.name} ${line.label}`, dash: nths.get(line.unit), gaps: true,
          colour: gpuio.colour.nth(DEVICE_TINTS[nth % DEVICE_TINTS.length]), values: spread(line.values, of[1], seconds.length) });
      }
    });
    return { seconds, lines };
  };

  const draw = (area, { seconds, lines }, sync) => {
    const units = new Map();
    for (const line of lines) {
      if (!units.has(line.unit)) units.set(line.unit, []);
      units.get(line.unit).push(line);
    }
    area.replaceChildren();
    const shown = Object.keys(NAMES).filter((one) => units.has(one));
    for (const unit of shown) {
      const drawn = units.get(unit);
      const host = make("div");
      area.append(make("h4", {}, NAMES[unit]), host);
      // An interval without I/Os has no latency; a rate of 0 is one.
      const timed = unit === "ns";
      gpuio.line.draw(host, {
        title: `${NAMES[unit]} over time`, height: unit === shown.at(-1) ? 170 : 150, sync,
        // One label for all, which share the axis.
        x: { values: seconds, name: "time after the ramp", label: unit === shown.at(-1) ? "time after the ramp" : "", unit: "s", log: false },
        y: { unit, zero: true, log: timed ? undefined : false },
        lines: drawn.map((line) => ({ ...line,
          values: timed ? line.values.map((value) => (value === 0 ? null : value)) : line.values })),
      });
    }
  };

  const NOTE = "One point per interval of the record; before 0 is the ramp, which is not measured; the last "
    + "interval may be short.";
  const beside = (group) => (group.devices.length
    ? " Dashed lines are devices: they include everything that used the device, "
      + (group.jobs > 1 ? `the ${group.jobs} jobs that ran together and other programs;` : "also other programs;")
      + " lines that are always zero are not drawn, and a gap is an interval without data."
    : " The devices were idle during the job, or their figures are unknown.");

  const TOO_MANY = " Device activity during this job is only in the record: with all of it, this page "
    + "would be too large. Use a report of fewer records.";

  const create = (host) => {
    const controls = make("div", { class: "controls" });
    const chips = make("div", { class: "devices" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(make("figcaption", {}, "Over time"), controls, chips, area, note);
    let chosen = null;
    // The chosen devices, by name; the choice also applies to other jobs.
    const picked = new Map();
    count += 1;
    const sync = `time-${count}`;

    const chip = (name, on, change) => {
      const box = make("input", { type: "checkbox", checked: on });
      box.addEventListener("change", () => { picked.set(name, box.checked); change(); });
      return make("label", { class: "chip" }, box, name);
    };

    const redraw = () => {
      const found = jobs();
      chips.replaceChildren();
      if (!found.size) {
        controls.replaceChildren();
        area.replaceChildren();
        note.textContent = "No shown row has a time series.";
        return;
      }
      const key = found.has(chosen) ? chosen : found.keys().next().value;
      const job = data.series().jobs[key];
      const group = groupOf(job);
      // A list of thousands is of no use: the filters make it short.
      const listed = [...found].slice(0, 500);
      controls.replaceChildren(gpuio.axisPlot.select("job", listed, key, (value) => { chosen = value; redraw(); }));
      const devices = group ? group.devices : [];
      const first = busiest(devices);
      const on = (name) => (picked.has(name) ? picked.get(name) : first.has(name));
      // The boxes stay where they are, so that they keep the focus.
      const lines = () => draw(area,
        together(job, group, new Set(devices.map(({ name }) => name).filter(on))), sync);
      if (devices.length) {
        chips.append(make("fieldset", {}, make("legend", {}, "devices"),
          ...devices.map(({ name }) => chip(name, on(name), lines))));
      }
      lines();
      note.textContent = NOTE + (group ? beside(group) : job.group ? TOO_MANY : " Devices were not sampled during this job.")
        + (found.size > listed.length ? ` ${listed.length} of ${found.size} jobs are listed.` : "");
    };
    return redraw;
  };

  return { create, places, together };
})();
