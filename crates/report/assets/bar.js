"use strict";
// Bars from 0, one below the other, each with its name, its figure, its range and a mark.

gpuio.bar = (() => {
  const { make, data } = gpuio;
  const { full, print } = gpuio.format;
  const ROW = 26;
  // A character of 13 px at most.
  const WIDE = 7.5;
  const MARK = "The mark is the lowest ceiling.";

  // A bar of a figure: the median of some rows, which are runs of one load.
  const of = (figure, rows, name) => {
    const all = (key) => data.whole(key, rows);
    const have = rows.filter((row) => data.value(figure.key, row) !== null).length;
    const none = have > 0 && have < rows.length ? `no figure: ${have} of ${rows.length} runs have one` : "no figure";
    return { name, figure, values: all(figure.key), none, path: data.word("path", rows[0]), what: "", faint: false,
      ceilings: figure.key === "throughput" ? all("ceiling") : [] };
  };

  const words = ({ what, figure, values, none }) =>
    [what, values.length ? full(figure.unit, data.median(values)) : none].filter(Boolean).join(" ");

  // Draws one bar at a height, right of its name, or below it where names are long.
  const one = (svg, y, width, left, bar, scale) => {
    const { figure, values, ceilings } = bar;
    const text = words(bar);
    const long = values.length ? data.median(values) * scale : 0;
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const spread = values.length > 1 ? `, median of ${values.length}, ${print(figure.unit, low)} to ${print(figure.unit, high)}` : "";
    const told = `${bar.told || bar.name}: ${text}${spread}`;
    const group = make("g", { tabindex: "0", role: "img", "aria-label": told }, make("title", {}, told));
    const middle = y + 15;
    group.append(left > 8 ? make("text", { x: left - 8, y: middle, "text-anchor": "end", class: "name" }, bar.name)
      : make("text", { x: left, y: y - 5, class: "name", ...gpuio.picture.squeezed(bar.name.length * WIDE, width - left) }, bar.name));
    const rect = make("rect", { x: left, y: y + 3, width: Math.max(1, long), height: ROW - 8, rx: 2, "fill-opacity": bar.faint ? 0.55 : 1 });
    rect.style.fill = gpuio.colour.path(bar.path);
    group.append(rect);
    const line = (class_, at, to, above, below) => group.append(make("line", { x1: left + at, x2: left + to, y1: y + above, y2: y + below, class: class_ }));
    if (low < high) line("range", low * scale, high * scale, 12, 12);
    if (ceilings.length) {
      const at = data.median(ceilings) * scale;
      line("ceiling", at, at, 0, ROW - 3);
      group.lastChild.append(make("title", {}, `lowest ceiling: ${full("bytes/s", data.median(ceilings))}`));
    }
    const end = Math.max(long, low < high ? high * scale : 0);
    // Behind the mark of the ceiling where it would run through the text.
    const mark = ceilings.length ? data.median(ceilings) * scale : -1;
    const crossed = mark > end - 2 && mark < end + 8 + text.length * WIDE;
    group.append(make("text", { x: left + (crossed ? mark : end) + 6, y: middle, class: "value" }, text));
    svg.append(group);
  };

  // Draws bars below one another at the end of a part of the page.
  const draw = (part, label, bars, width, title) => {
    const widest = 16 + Math.max(...bars.map(({ name }) => name.length)) * WIDE;
    const below = widest > width * 0.4;
    const left = below ? 0 : widest;
    const most = Math.max(...bars.flatMap(({ values, ceilings }) => [...values, ...ceilings]));
    const room = 12 + Math.max(...bars.map((bar) => words(bar).length)) * WIDE;
    const scale = most > 0 ? Math.max(20, width - left - room) / most : 0;
    const svg = make("svg", { width, role: "group", "aria-label": label });
    let top = 0;
    for (const bar of bars) {
      if (below && bar.name) top += ROW - 6;
      one(svg, top, width, left, bar, scale);
      top += ROW;
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${top}`);
    svg.setAttribute("height", top);
    part.append(svg);
    part.picture = () => gpuio.picture.ofSvg(svg, title);
  };

  const marked = (bars) => bars.some(({ ceilings }) => ceilings.length > 0);

  return { of, draw, marked, MARK };
})();
