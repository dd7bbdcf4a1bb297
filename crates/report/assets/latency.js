"use strict";
// Latency distributions: by percentile, and as a histogram, of one block size at one depth, or of
// all values of the only axis on which loads differ, if they are few. Those of repeated runs of a
// path are added up, which is exact: they are counts.

gpuio.latency = (() => {
  const { make, data } = gpuio;
  // The lowest value of a grain, and the one after it; the inverse of the writer's index.
  const low = (index, bits) => {
    const sub = 2 ** bits;
    if (index < 2 * sub) return index;
    const shift = Math.floor(index / sub) - 1;
    return (index - shift * sub) * 2 ** shift;
  };

  // Properties that separate lines, and how many lines a plot has where another one does so too.
  const APART = ["path", "direction"];
  const FEW = 8;

  const lines = (shown, apart) => {
    const { bits, rows } = data.spreads();
    const own = gpuio.hold.depthsDiffer(shown);
    const varying = apart.filter((key) => gpuio.hold.places(data.axes.get(key), shown).length > 1);
    const groups = data.groups(varying.length ? varying : ["path"], shown);
    const seen = new Map();
    return [...groups].slice(0, 24).map(([name, of]) => {
      const counts = new Map();
      for (const row of of) {
        for (let at = 0; at < rows[row].length; at += 2) {
          counts.set(rows[row][at], (counts.get(rows[row][at]) || 0) + rows[row][at + 1]);
        }
      }
      const sorted = [...counts].sort((a, b) => a[0] - b[0]);
      const all = sorted.reduce((sum, [, count]) => sum + count, 0);
      const colour = gpuio.colour.path(data.word("path", of[0]));
      const dash = seen.get(colour) || 0;
      seen.set(colour, dash + 1);
      const ends = (key, how) => how(...of.map((row) => data.value(key, row)));
      return { label: own ? `${name} ${gpuio.hold.depth(of)}` : name, colour, dash, sorted, of: of.length, all, bits,
        least: ends("min", Math.min), most: ends("max", Math.max) };
    });
  };

  // The value below which a share of all lies: the middle of its grain, within the true bounds.
  const at = (line, share) => {
    const wanted = Math.max(1, Math.ceil(share * line.all));
    if (wanted >= line.all) return line.most;
    let seen = 0;
    for (const [index, count] of line.sorted) {
      seen += count;
      if (seen >= wanted) {
        const middle = (low(index, line.bits) + low(index + 1, line.bits)) / 2;
        return Math.min(line.most, Math.max(line.least, middle));
      }
    }
    return line.most;
  };

  // As many nines as the I/Os bear: one of a thousand is the end of a thousand.
  const percentiles = (made) => {
    const all = Math.max(2, ...made.map((line) => line.all));
    const nines = Math.log10(all);
    const x = [];
    for (let step = 0; step <= 120; step += 1) x.push(10 ** ((nines * step) / 120));
    const ticks = [[1, "0"], [2, "50"], [10, "90"], [100, "99"], [1e3, "99.9"], [1e4, "99.99"],
      [1e5, "99.999"], [1e6, "99.9999"], [1e7, "99.99999"]].filter(([place]) => place <= all);
    return {
      title: "Latency by percentile",
      x: { values: x, log: true, label: "percentile", widest: 60,
        ticks: ticks.map(([place, text]) => ({ at: place, text, first: text === "50" || text === "99" })),
        text: (value) => (100 * (1 - 1 / value)).toPrecision(6).replace(/\.?0+$/, "") },
      y: { unit: "ns", zero: false, log: true },
      lines: made.map((line) => ({ ...line,
        values: x.map((value) => (value > line.all * 1.0001 ? null : at(line, 1 - 1 / value))) })),
    };
  };

  const histogram = (made) => {
    const grain = Math.min(3, made.length ? made[0].bits : 3);
    const bins = made.map((line) => {
      const bin = new Map();
      for (const [index, count] of line.sorted) {
        const middle = (low(index, line.bits) + low(index + 1, line.bits)) / 2;
        const place = Math.floor(Math.log2(Math.max(1, middle)) * 2 ** grain);
        bin.set(place, (bin.get(place) || 0) + count);
      }
      return bin;
    });
    const used = bins.flatMap((bin) => [...bin.keys()]);
    const first = Math.min(...used) - 1;
    const last = Math.max(...used) + 1;
    const places = Array.from({ length: last - first + 1 }, (_, nth) => first + nth);
    return {
      title: "Latency histogram", stepped: true,
      x: { values: places.map((place) => 2 ** (place / 2 ** grain)), log: true, unit: "ns", label: "latency",
        text: (value) => `${gpuio.format.print("ns", value)} to ${gpuio.format.print("ns", value * 2 ** (1 / 2 ** grain))}` },
      y: { unit: "share", zero: true, log: false },
      lines: made.map((line, nth) => ({ ...line,
        values: places.map((place) => (100 * (bins[nth].get(place) || 0)) / line.all) })),
    };
  };

  const NOTE = {
    percentiles: (bits) => `To the right are the slowest I/Os: each tick is ten times rarer. Read from the histogram in the record, grains of ${2 ** bits} per power of two; ends are exact.`,
    histogram: () => "Per cent of the I/Os in each bin. Bins are equally wide on the logarithmic axis.",
  };

  const create = (host) => {
    const kind = host.dataset.kind;
    const chosen = new Map();
    const head = make("figcaption");
    const controls = make("div", { class: "controls" });
    const area = make("div");
    const note = make("p", { class: "quiet" });
    host.append(head, controls, area, note);
    const name = kind === "histogram" ? "Latency, histogram" : "Latency by percentile";
    const redraw = () => {
      const { rows } = data.spreads();
      const all = data.shown().filter((row) => rows[row]);
      const { held } = gpuio.hold.rows(all, APART, new Map());
      const axis = held.length === 1 && data.groups([...APART, held[0].axis.key], all).size <= FEW ? held[0].axis : null;
      const apart = axis && !chosen.get(axis.key) ? [...APART, axis.key] : APART;
      const drawn = gpuio.hold.rows(all, apart, chosen);
      head.textContent = name + gpuio.hold.caption(drawn.held);
      controls.replaceChildren(...(axis ? [gpuio.axisPlot.select(axis.label,
        [["", "all"], ...held[0].offered.map((one) => [axis.words[one], axis.words[one]])], chosen.get(axis.key) || "",
        (word) => { chosen.set(axis.key, word); redraw(); })] : gpuio.hold.controls(drawn.held, chosen, redraw)));
      const made = lines(drawn.rows, apart);
      if (!made.length) {
        area.replaceChildren();
        note.textContent = "Not drawn: no shown row has a latency.";
        return;
      }
      gpuio.line.draw(area, (kind === "histogram" ? histogram : percentiles)(made));
      const added = made.some((line) => line.of > 1) ? " Repeated runs are added up." : "";
      const depths = gpuio.hold.depthsDiffer(drawn.rows) ? gpuio.hold.DEPTHS : "";
      note.textContent = NOTE[kind](data.spreads().bits) + added + depths;
    };
    return redraw;
  };

  return { create };
})();
