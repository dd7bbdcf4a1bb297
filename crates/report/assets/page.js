"use strict";
// Interaction: theme, filters, plots, files to save, print.

gpuio.page = (() => {
  const { make, data } = gpuio;
  const KINDS = { axis: gpuio.axisPlot, bars: gpuio.bars, percentiles: gpuio.latency,
    histogram: gpuio.latency, time: gpuio.time, heat: gpuio.heat };
  const plots = new Map();
  const seen = new Set();

  // A plot in a folded part has no width: it is drawn when the part opens.
  const folded = (host) => Boolean(host.closest("details:not([open])"));

  // Figures that can't be drawn are listed below the others, with the reason.
  const listUndrawn = () => {
    const box = document.getElementById("undrawn");
    const lines = [];
    for (const host of seen) {
      const note = [...host.querySelectorAll("p.quiet")].map((one) => one.textContent).find((text) => text.startsWith("Not drawn"));
      host.classList.toggle("undrawn", Boolean(note));
    }
    for (const host of document.querySelectorAll("figure.plot.undrawn")) {
      const note = [...host.querySelectorAll("p.quiet")].map((one) => one.textContent).find((text) => text.startsWith("Not drawn"));
      if (note) lines.push(`${host.querySelector("figcaption").textContent}: ${note.replace("Not drawn: ", "")}`);
    }
    for (const part of document.querySelectorAll("details.more, #plots > .pair")) {
      const figures = [...part.querySelectorAll("figure.plot")];
      part.hidden = figures.every((one) => one.classList.contains("undrawn"));
    }
    box.hidden = lines.length === 0;
    box.querySelector("ul").replaceChildren(...lines.map((line) => make("li", {}, line)));
  };

  const draw = (host) => {
    seen.add(host);
    plots.get(host)();
  };
  // Redraws what is on the screen; the rest when it is opened.
  const redraw = () => {
    for (const host of [...seen]) {
      if (folded(host)) seen.delete(host);
      else plots.get(host)();
    }
    listUndrawn();
  };

  // Opens and draws everything: for print, and for tests.
  const drawAll = () => {
    document.querySelectorAll("details.more").forEach((part) => { part.open = true; });
    for (const host of plots.keys()) if (!seen.has(host)) draw(host);
    listUndrawn();
  };

  // Buttons that save what is drawn.
  const addButtons = (host) => {
    const name = () => host.querySelector("figcaption").textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
    const button = (label, work) => {
      const made = make("button", { type: "button" }, label);
      made.addEventListener("click", work);
      return made;
    };
    const { ofFigure, svgText, png } = gpuio.picture;
    host.append(make("p", { class: "saves" },
      button("Save SVG", () => save(`${name()}.svg`, "image/svg+xml", [svgText(ofFigure(host))])),
      button("Save PNG", async () => save(`${name()}.png`, "image/png", [await png(ofFigure(host))]))));
  };

  // Plots whose value can't be told before they are drawn are tried, so that an empty part is not
  // offered.
  const startPlots = () => {
    for (const host of document.querySelectorAll("figure.plot")) {
      plots.set(host, KINDS[host.dataset.kind].create(host));
      addButtons(host);
    }
    // With a single load, its distribution and its time are all that can be shown.
    if (data.figures.loads.every((load) => load === data.figures.loads[0])) {
      document.querySelectorAll("details.alone").forEach((part) => { part.open = true; });
    }
    for (const part of document.querySelectorAll("details.more")) {
      part.addEventListener("toggle", () => {
        if (!part.open) return;
        part.querySelectorAll("figure.plot").forEach((host) => { if (!seen.has(host)) draw(host); });
        listUndrawn();
      });
    }
    // Whether these two can be drawn needs no width.
    for (const [host, work] of plots) {
      if (!["bars", "heat"].includes(host.dataset.kind)) continue;
      work();
      seen.add(host);
    }
    listUndrawn();
    document.querySelectorAll('figure.plot[data-kind="bars"], figure.plot[data-kind="heat"]').forEach((host) => seen.delete(host));
    // At once, so that nothing is empty at the first look or in a picture of the page.
    for (const host of plots.keys()) if (!seen.has(host) && !folded(host)) draw(host);
    listUndrawn();
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
    startPrint(() => applyTheme("light"), () => applyTheme(THEMES[nth]));
  };

  // On paper are the plots that are open on the screen, paths against paths and latencies, and every
  // other part that is not longer than a page or two. Vector pictures replace the canvases.
  const LONG = { evidence: 12, commands: 12, rows: 40 };
  const startPrint = (light, back) => {
    let before = [];
    addEventListener("beforeprint", () => {
      before = [...document.querySelectorAll("details")].map((one) => [one, one.open]);
      document.querySelectorAll("details.paper-too").forEach((part) => { part.open = true; });
      for (const host of plots.keys()) if (!folded(host)) seen.add(host);
      // Plots are drawn at the width of the paper.
      document.documentElement.classList.add("printing");
      light();
      for (const fold of document.querySelectorAll("details.fold")) {
        const inner = [...fold.querySelectorAll("details")];
        const long = fold.querySelectorAll("tbody tr").length > LONG.rows && !(fold.id in LONG)
          || fold.id in LONG && inner.length > LONG[fold.id];
        fold.open = !long;
        // The names of what a finding concerns are few words.
        if (fold.id === "findings" || fold.id in LONG && !long) inner.forEach((one) => { one.open = true; });
      }
      fit(true);
      for (const area of document.querySelectorAll("figure.plot *")) {
        const canvas = area.picture && area.querySelector(":scope > .canvas");
        if (!canvas || area.querySelector(":scope > .paper")) continue;
        const picture = area.picture();
        picture.classList.add("paper");
        canvas.before(picture);
      }
    });
    addEventListener("afterprint", () => {
      document.querySelectorAll(".paper").forEach((one) => one.remove());
      before.forEach(([one, open]) => { one.open = open; });
      document.documentElement.classList.remove("printing");
      fit(false);
      back();
    });
    document.getElementById("print").addEventListener("click", () => print());
  };

  // A link into a folded part opens it.
  const startLinks = () => {
    const open = () => {
      const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
      if (target instanceof HTMLDetailsElement) target.open = true;
    };
    addEventListener("hashchange", open);
    for (const link of document.querySelectorAll('a[href^="#"]')) {
      link.addEventListener("click", () => {
        const target = document.getElementById(link.getAttribute("href").slice(1));
        if (target instanceof HTMLDetailsElement) target.open = true;
      });
    }
    open();
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
    const tell = () => { count.textContent = `${data.shown().length} of ${data.figures.rows} rows are shown`; };
    data.changed(tell);
    tell();
    section.hidden = !chips.querySelector("fieldset input[type=checkbox]");
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

  // Where a table is wider than its place, the cells of a row stand below one another, each with its
  // head: nothing is out of sight. The table of all rows is sorted by its heads, and so only on paper.
  const fit = (printing) => {
    for (const table of document.querySelectorAll(printing ? "table.summary, #rows" : "table.summary")) {
      table.classList.remove("cards");
      const narrow = !printing && innerWidth <= 640;
      table.classList.toggle("cards", narrow || table.scrollWidth > table.parentElement.clientWidth + 1);
    }
    if (!printing) document.getElementById("rows")?.classList.remove("cards");
  };
  const startSummary = () => {
    addEventListener("resize", () => fit(false));

    for (const row of document.querySelectorAll("table.summary tr:not(.note)")) {
      const heads = row.closest("table").tHead.rows[0].cells;
      [...row.cells].forEach((cell, nth) => { cell.dataset.head = heads[nth].textContent; });
    }
    fit(false);
  };

  const start = () => {
    document.querySelector(".tools").hidden = false;
    gpuio.colour.paint();
    startTheme();
    startFiles();
    startLinks();
    startSummary();
    if (!data.figures.rows) return;
    startFilters();
    gpuio.table.start();
    gpuio.hold.tellDepths();
    document.getElementById("plots").hidden = false;
    startPlots();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  };

  start();
  return { drawAll, csv, bytes };
})();
