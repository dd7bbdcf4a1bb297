"use strict";
// The table of all rows: sorted by any column, a hundred rows at a time.

gpuio.table = (() => {
  const { make, data } = gpuio;
  const PAGE = 100;
  let page = 0;
  let sort = { key: null, down: true };

  const words = (key, row) => {
    if (key === "name") return data.figures.names[row];
    if (key === "loads") return data.figures.loads[row];
    if (key === "disturbed") return data.figures.disturbed[row];
    return data.word(key, row);
  };

  const order = (rows) => {
    if (!sort.key) return rows;
    const figure = data.columns.get(sort.key);
    const sign = sort.down ? -1 : 1;
    const by = figure
      ? (a, b) => {
        const [one, two] = [figure.values[a], figure.values[b]];
        // Rows without a figure come last in both directions.
        if (one === null || two === null) return (one === null) - (two === null);
        return sign * (one - two);
      }
      : (a, b) => -sign * words(sort.key, a).localeCompare(words(sort.key, b), undefined, { numeric: true });
    return [...rows].sort(by);
  };

  const line = (row, keys, heads) => {
    const made = make("tr", { "data-path": data.word("path", row) });
    for (const [nth, key] of keys.entries()) {
      const head = heads[nth].textContent;
      const figure = data.columns.get(key);
      if (figure) {
        const value = figure.values[row];
        made.append(make("td", { class: "n", title: value, "data-head": head }, gpuio.format.print(figure.unit, value)));
      } else {
        const cell = key === "name" ? make("th", { scope: "row" }) : make("td", { "data-head": head });
        cell.textContent = words(key, row);
        made.append(cell);
      }
    }
    return made;
  };

  const pager = (all) => {
    const box = document.querySelector("#table .pages");
    const pages = Math.ceil(all / PAGE);
    box.hidden = pages < 2;
    const step = (text, to) => {
      const button = make("button", { type: "button", disabled: to < 0 || to >= pages }, text);
      button.addEventListener("click", () => { page = to; draw(); });
      return button;
    };
    const [first, last] = [page * PAGE + 1, Math.min(all, (page + 1) * PAGE)];
    box.replaceChildren(step("← previous", page - 1), ` ${first} to ${last} of ${all} `, step("next →", page + 1));
  };

  const draw = () => {
    const table = document.getElementById("rows");
    const heads = [...table.tHead.rows[0].cells];
    const keys = heads.map((head) => head.dataset.key);
    const rows = order(data.shown());
    page = Math.min(page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
    const part = rows.slice(page * PAGE, (page + 1) * PAGE);
    table.tBodies[0].replaceChildren(...part.map((row) => line(row, keys, heads)));
    heads.forEach((head) => head.setAttribute("aria-sort",
      head.dataset.key === sort.key ? (sort.down ? "descending" : "ascending") : "none"));
    pager(rows.length);
    gpuio.colour.paint();
  };

  const start = () => {
    for (const head of document.querySelectorAll("#rows thead th")) {
      const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const key = head.dataset.key;
        sort = { key, down: sort.key === key ? !sort.down : true };
        page = 0;
        draw();
      });
    }
    data.changed(() => { page = 0; draw(); });
    draw();
  };

  return { start, draw };
})();
