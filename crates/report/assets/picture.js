"use strict";
// Plots as vector pictures, which are saved as SVG or PNG and replace the canvases on paper.

gpuio.picture = (() => {
  const { make } = gpuio;
  const css = (name) => gpuio.colour.css(name);
  const FONT = "system-ui, sans-serif";
  const DASHES = ["", "7 4", "2 3", "9 3 2 3", "14 4"];

  const frame = (width, height, title) => make("svg", { viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": title, "font-family": FONT, "font-size": "12" });
  const text = (x, y, words, more) => make("text", { x, y, fill: css("--quiet"), ...more }, words);

  // What makes a text of a width narrower where it has no room as it is, so that nothing is cut.
  const squeezed = (wide, room) => (wide > room ? { textLength: Math.max(20, room), lengthAdjust: "spacingAndGlyphs" } : {});

  // Whether a plot of this width has room for a dot at each value.
  const dots = (spec, width) => Boolean(spec.x.words) || (spec.x.values.length * 18 < Math.min(width, 1080) && !spec.stepped);

  // The ticks that a plot of uPlot shows, with their texts.
  const ticks = (axis) => {
    const [at, words] = [axis._splits || [], axis._values || []];
    return at.map((value, nth) => [value, words[nth]]).filter(([value, word]) => value !== null && word);
  };

  // A line plot, as it is on the screen: its scales, ticks, lines, whiskers and names.
  const ofLine = (plot, spec) => {
    // What is not drawn yet has no scales: uPlot draws when the current task ends, or here.
    plot.batch(() => {});
    const ratio = plot.pxRatio || devicePixelRatio;
    const box = { left: plot.bbox.left / ratio, top: plot.bbox.top / ratio, width: plot.bbox.width / ratio, height: plot.bbox.height / ratio };
    const x = (value) => box.left + plot.valToPos(value, "x");
    const y = (value) => box.top + plot.valToPos(value, "y");
    const lines = spec.lines.map((line, nth) => ({ ...line, nth })).filter((line) => plot.series[line.nth + 1].show);
    const named = spec.keys === false ? [] : lines;
    const rows = [[]];
    let used = 0;
    for (const line of named) {
      const wide = 34 + line.label.length * 7.2 + 16;
      if (used + wide > plot.width - box.left && used > 0) {
        rows.push([]);
        used = 0;
      }
      rows[rows.length - 1].push([line, box.left + used]);
      used += wide;
    }
    const height = plot.height + (named.length ? rows.length * 18 + 6 : 0);
    const svg = frame(plot.width, height, spec.title);
    const [right, bottom] = [box.left + box.width, box.top + box.height];
    for (const [value, words] of ticks(plot.axes[1])) {
      svg.append(make("line", { x1: box.left, x2: right, y1: y(value), y2: y(value), stroke: css("--grid") }),
        text(box.left - 8, y(value) + 4, words, { "text-anchor": "end" }));
    }
    for (const [value, words] of ticks(plot.axes[0])) {
      svg.append(make("line", { x1: x(value), x2: x(value), y1: box.top, y2: bottom, stroke: css("--grid") }),
        text(x(value), bottom + 16, words, { "text-anchor": "middle" }));
    }
    svg.append(text(box.left + box.width / 2, plot.height - 2, plot.axes[0].label || "", { "text-anchor": "middle" }));
    if (plot.axes[1].label) {
      const middle = box.top + box.height / 2;
      // Two lines where one is longer than the axis.
      const words = plot.axes[1].label;
      const lines = words.length * 6.6 > box.height ? words.split(" (").map((part) => part.replace(/\)$/, "")) : [words];
      lines.forEach((line, nth) => {
        const left = (lines.length > 1 ? 10 : 12) + nth * 13;
        svg.append(text(left, middle, line, { "text-anchor": "middle", transform: `rotate(-90 ${left} ${middle})` }));
      });
    }
    const inside = (value) => value !== null && value !== undefined && Number.isFinite(value)
      && (plot.scales.y.distr !== 3 || value > 0);
    for (const line of lines) {
      let path = "";
      let pen = false;
      let apart = false;
      line.values.forEach((value, at) => {
        apart = apart || Boolean(line.parted && line.parted[at].length);
        if (!inside(value)) {
          if (value === null && line.gaps) pen = false;
          return;
        }
        const [h, v] = [x(spec.x.values[at]).toFixed(1), y(value).toFixed(1)];
        path += pen && !apart ? (spec.stepped ? `H${h}V${v}` : `L${h} ${v}`) : `M${h} ${v}`;
        [pen, apart] = [true, false];
      });
      if (!spec.x.words) {
        svg.append(make("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": 2, "stroke-dasharray": DASHES[(line.dash || 0) % 5] || null }));
      }
      const dotted = dots(spec, plot.width);
      line.values.forEach((value, at) => {
        if (!inside(value)) return;
        const across = x(spec.x.values[at]);
        if (line.low && line.low[at] !== line.high[at] && inside(line.low[at])) {
          svg.append(make("line", { x1: across, x2: across, y1: y(line.low[at]), y2: y(line.high[at]), stroke: line.colour, "stroke-opacity": 0.6 }));
        }
        if (dotted) {
          svg.append(make("circle", { cx: across, cy: y(value), r: 3.5, fill: line.colour }));
        }
      });
    }
    rows.forEach((row, nth) => row.forEach(([line, left]) => {
      const middle = plot.height + 12 + nth * 18;
      svg.append(make("line", { x1: left, x2: left + 24, y1: middle, y2: middle, stroke: line.colour, "stroke-width": 3, "stroke-dasharray": DASHES[(line.dash || 0) % 5] || null }),
        text(left + 30, middle + 4, line.label, { fill: css("--ink"), ...squeezed(line.label.length * 7.2, plot.width - left - 34) }));
    }));
    return svg;
  };

  // A copy of a picture in the page, with the style sheet's colours in itself, and its heading.
  const ofSvg = (from, title) => {
    const [, , width, height] = from.getAttribute("viewBox").split(" ").map(Number);
    const head = title ? 24 : 0;
    const svg = frame(width, height + head, title || from.getAttribute("aria-label"));
    if (title) svg.append(text(0, 15, title, { "font-weight": "600" }));
    const inside = make("g", { transform: `translate(0 ${head})` });
    const copy = (element) => {
      const made = element.cloneNode(false);
      const style = getComputedStyle(element);
      for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight"]) {
        if (element.tagName !== "g" && element.tagName !== "title") made.setAttribute(name, style.getPropertyValue(name));
      }
      for (const name of ["style", "class", "tabindex"]) made.removeAttribute(name);
      for (const child of element.childNodes) made.append(child.nodeType === 1 ? copy(child) : child.cloneNode());
      return made;
    };
    for (const child of from.children) inside.append(copy(child));
    svg.append(inside);
    return svg;
  };

  // A coloured table: a rectangle and a text for each cell.
  const ofTable = (table) => {
    const frameBox = table.getBoundingClientRect();
    const svg = frame(Math.ceil(frameBox.width), Math.ceil(frameBox.height), table.caption ? table.caption.textContent : "");
    for (const cell of table.querySelectorAll("th, td")) {
      const box = cell.getBoundingClientRect();
      const style = getComputedStyle(cell);
      const right = style.textAlign === "right";
      const [left, top] = [box.left - frameBox.left, box.top - frameBox.top];
      const at = right ? left + box.width - 10 : left + 10;
      svg.append(make("rect", { x: left + 1, y: top + 1, width: Math.max(0, box.width - 2), height: Math.max(0, box.height - 2), fill: style.backgroundColor }));
      const small = cell.querySelector("small");
      const words = small ? cell.firstChild.textContent : cell.textContent;
      svg.append(text(at, top + 19, words, { fill: style.color, "text-anchor": right ? "end" : "start", "font-size": style.fontSize }));
      if (small) svg.append(text(at, top + 34, small.textContent, { fill: style.color, "text-anchor": right ? "end" : "start", "font-size": "10" }));
    }
    return svg;
  };

  // All pictures of a figure below one another, with its caption, on the page's own colour.
  const ofFigure = (figure) => {
    const parts = [...figure.querySelectorAll("*")].filter((one) => one.picture).map((one) => one.picture());
    const heads = parts.map((part) => part.getAttribute("aria-label"));
    const sizes = parts.map((part) => part.getAttribute("viewBox").split(" ").slice(2).map(Number));
    const caption = figure.querySelector("figcaption").textContent;
    const gap = parts.length > 1 ? 22 : 6;
    const width = Math.max(360, caption.length * 8.2 + 24, ...sizes.map(([wide]) => wide + 24));
    const height = 40 + sizes.reduce((sum, [, high]) => sum + high + gap, 0);
    const svg = frame(width, height, caption);
    svg.append(make("rect", { width, height, fill: css("--paper") }),
      text(12, 26, caption.charAt(0).toUpperCase() + caption.slice(1), { fill: css("--ink"), "font-size": 15, "font-weight": 600 }));
    let top = 40;
    parts.forEach((part, nth) => {
      if (parts.length > 1 && !part.querySelector("text[font-weight]")) {
        svg.append(text(12, top + 12, heads[nth], { "font-weight": 600 }));
      }
      const place = make("g", { transform: `translate(12 ${top + (parts.length > 1 ? 16 : 0)})` });
      place.append(...part.childNodes);
      svg.append(place);
      top += sizes[nth][1] + gap;
    });
    return svg;
  };

  const svgText = (svg) => new XMLSerializer().serializeToString(svg);

  // The bytes of a PNG of twice the size, for slides.
  const png = (svg) => new Promise((done, failed) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: width * 2, height: height * 2 });
      canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
      const text = canvas.toDataURL("image/png").split(",")[1];
      done(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
    };
    image.onerror = failed;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  });

  return { dots, squeezed, ofLine, ofSvg, ofTable, ofFigure, svgText, png };
})();
