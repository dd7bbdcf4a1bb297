"use strict";
// Interaction: theme, filters, plots when they come into view, files to save, print.

gpuio.page = (() => {
  const { make, data } = gpuio;
  const KINDS = { axis: gpuio.axisPlot, bars: gpuio.bars, percentiles: gpuio.latency,
    histogram: gpuio.latency, time: gpuio.time, heat: gpuio.heat };
  const plots = new Map();
  const seen = new Set();

  const redraw = () => {
    for (const host of seen) plots.get(host)();
  };

  // Draws every plot, visible or not: for print, and for tests.
  const drawAll = () => {
    for (const [host, draw] of plots) {
      if (!seen.has(host)) {
        seen.add(host);
        draw();
      }
    }
  };

  const startPlots = () => {
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting || seen.has(entry.target)) continue;
        seen.add(entry.target);
        plots.get(entry.target)();
      }
    }, { rootMargin: "300px" });
    for (const host of document.querySelectorAll("figure.plot")) {
      plots.set(host, KINDS[host.dataset.kind].create(host));
      watch.observe(host);
    }
    // Plots out of view are drawn when idle.
    const idle = (work) => setTimeout(work, 30);
    const next = () => {
      const host = [...plots.keys()].find((one) => !seen.has(one));
      if (!host) return;
      seen.add(host);
      plots.get(host)();
      idle(next);
    };
    idle(next);
    // A burst of clicks draws once.
    let waiting = 0;
    data.changed(() => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(redraw);
    });
  };

  const THEMES = ["as the system", "light", "dark"];
  const applyTheme = (name) => {
    const root = document.documentElement;
    if (name === "light" || name === "dark") root.dataset.theme = name;
    else delete root.dataset.theme;
    gpuio.colour.paint();
    redraw();
  };
  const startTheme = () => {
    const button = document.getElementById("theme");
    let nth = 0;
    button.addEventListener("click", () => {
      nth = (nth + 1) % THEMES.length;
      button.textContent = `Theme: ${THEMES[nth]}`;
      applyTheme(THEMES[nth]);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme(THEMES[nth]));
    addEventListener("beforeprint", () => {
      drawAll();
      applyTheme("light");
      // Printed evidence of many jobs would be too long.
      const evidence = document.querySelectorAll("#evidence details");
      if (evidence.length <= 12) evidence.forEach((details) => { details.open = true; });
    });
    addEventListener("afterprint", () => applyTheme(THEMES[nth]));
  };

  const chip = (axis, place) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => data.show(axis.key, place, box.checked));
    const label = make("label", { class: "chip" }, box, axis.words[place]);
    if (axis.key === "path") label.dataset.path = axis.words[place];
    return label;
  };
  const startFilters = () => {
    const section = document.getElementById("filters");
    const chips = section.querySelector(".chips");
    const count = section.querySelector(".count");
    for (const axis of data.axes.values()) {
      if (!axis.filter || axis.words.length < 2 || axis.words.length > 60) continue;
      const all = axis.words.map((_, place) => chip(axis, place));
      const many = axis.words.length > 12;
      const set = make("fieldset", {}, make("legend", {}, axis.label), ...all);
      chips.append(many ? make("details", {}, make("summary", {}, `${axis.label} (${all.length})`), set) : set);
    }
    const search = make("input", { type: "search", placeholder: "part of a name" });
    search.addEventListener("input", () => data.search(search.value));
    chips.append(make("fieldset", {}, make("legend", {}, "job or record"), search));
    const tell = () => { count.textContent = `${data.shown().length} of ${data.figures.rows} rows are shown.`; };
    data.changed(tell);
    tell();
    section.hidden = data.figures.rows < 2;
  };

  const save = (name, type, parts) => {
    const url = URL.createObjectURL(new Blob(parts, { type }));
    const link = make("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  // The shown rows: places on all axes, then every figure with all its digits.
  const csv = () => {
    const field = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const [axes, figures] = [data.figures.axes, data.figures.figures];
    const lines = [[...axes.map((axis) => axis.key), ...figures.map((one) => `${one.key} [${one.unit}]`)]];
    for (const row of data.shown()) {
      lines.push([...axes.map((axis) => axis.words[axis.of[row]]), ...figures.map((one) => one.values[row])]);
    }
    return lines.map((line) => line.map(field).join(",") + "\n").join("");
  };

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const saveRecords = async (packed) => {
    const gzip = new Blob([bytes(packed)]);
    if (typeof DecompressionStream === "undefined") {
      save("records.json.gz", "application/gzip", [gzip]);
      return;
    }
    const text = await new Response(gzip.stream().pipeThrough(new DecompressionStream("gzip"))).text();
    save("records.json", "application/json", [text]);
  };

  const startFiles = () => {
    const on = (id, work) => document.getElementById(id).addEventListener("click", work);
    on("save-csv", () => save("rows.csv", "text/csv", [csv()]));
    on("save-figures", () => save("figures.json", "application/json", [document.getElementById("figures").textContent]));
    const packed = document.getElementById("records").textContent;
    const button = document.getElementById("save-records");
    if (packed) button.addEventListener("click", () => saveRecords(packed));
    else {
      button.hidden = true;
      document.getElementById("no-records").hidden = false;
    }
  };

  const start = () => {
    document.querySelector(".tools").hidden = false;
    gpuio.colour.paint();
    startTheme();
    startFiles();
    if (!data.figures.rows) return;
    startFilters();
    gpuio.table.start();
    document.getElementById("plots").hidden = false;
    startPlots();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  };

  start();
  return { drawAll, csv, bytes };
})();
