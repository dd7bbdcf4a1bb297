"use strict";
// Highlights the way between two devices: their boxes, the links on it, and the matrix's cell.

const topology = (() => {
  const svg = document.querySelector("svg.gt");
  const all = (selector) => [...svg.querySelectorAll(selector)];
  const boxes = new Map(all(".gt-node-box").map((one) => [one.dataset.box, one]));
  const links = new Map(all(".gt-link").map((one) => [one.dataset.link, one]));
  const devices = all(".gt-node-box[data-device]");
  const names = [...new Set(devices.map((one) => one.dataset.device))];
  const [first, second] = ["first", "second"].map((id) => document.getElementById(id));
  const answer = document.getElementById("answer");

  // From a box up to its host bridge.
  const up = (box) => {
    const way = [];
    for (let one = box; one; one = boxes.get(one.dataset.up)) way.push(one);
    return way;
  };

  // The way between two boxes: both sides up to where they meet, which is null for two host bridges.
  const way = (a, b) => {
    const [one, two] = [up(a), up(b)];
    const meet = one.find((box) => two.includes(box)) || null;
    const below = (side) => (meet ? side.slice(0, side.indexOf(meet)) : side);
    return { meet, below: [...below(one), ...below(two)] };
  };

  // Of devices with several boxes (a drive with two controllers) the shortest way.
  const between = (a, b) => {
    const of = (name) => devices.filter((box) => box.dataset.device === name);
    const ways = of(a).flatMap((one) => of(b).map((two) => way(one, two)));
    ways.sort((x, y) => (x.meet === null) - (y.meet === null) || x.below.length - y.below.length);
    return ways[0];
  };

  const rate = (bytes) => `${(Math.round(bytes / 1e8) / 10).toFixed(1)} GB/s`;

  // The narrowest link, where each link of the way is known.
  const narrowest = (found) => {
    const own = found.below.map((box) => links.get(box.dataset.box)).filter(Boolean);
    if (!own.length) return "";
    if (own.some((link) => !link.dataset.rate)) return " Not every link on the way is known, so neither is the narrowest.";
    const least = own.reduce((a, b) => (Number(b.dataset.rate) < Number(a.dataset.rate) ? b : a));
    const box = boxes.get(least.dataset.link);
    return ` Narrowest link: above ${box.dataset.name}, ${rate(Number(least.dataset.rate))} each way, without packets' headers.`;
  };

  const cellOf = (a, b) => all(".gt-cell").filter((cell) =>
    (cell.dataset.a === a && cell.dataset.b === b) || (cell.dataset.a === b && cell.dataset.b === a));

  const show = () => {
    const [a, b] = [first.value, second.value];
    all(".on").forEach((one) => one.classList.remove("on"));
    svg.classList.toggle("chosen", a !== b);
    if (a === b) {
      answer.textContent = "Choose two devices.";
      return;
    }
    const found = between(a, b);
    const mark = (one) => one && one.classList.add("on");
    for (const box of found.below) {
      mark(box);
      mark(links.get(box.dataset.box));
    }
    mark(found.meet);
    const cells = cellOf(a, b);
    cells.forEach(mark);
    all(".gt-nvlink").filter((one) => [a, b].includes(one.dataset.a) && (!one.dataset.b || [a, b].includes(one.dataset.b)))
      .forEach((one) => { if (cells.some((cell) => cell.querySelector(".gt-nv"))) mark(one); });
    const title = window.distances[`${a} ${b}`] || window.distances[`${b} ${a}`] || `${a} to ${b}`;
    const where = found.meet ? ` They meet at ${found.meet.dataset.name}.` : "";
    answer.textContent = `${title}.${where}${narrowest(found)}`;
  };

  const choose = (a, b) => {
    [first.value, second.value] = [a, b];
    show();
  };

  const start = () => {
    if (names.length < 2) return;
    for (const select of [first, second]) {
      for (const name of names) {
        const option = document.createElement("option");
        option.textContent = name;
        select.append(option);
      }
      select.addEventListener("change", show);
    }
    // A click on a device replaces the one that was chosen longer ago.
    let older = first;
    for (const box of devices) {
      box.addEventListener("click", () => {
        older.value = box.dataset.device;
        older = older === first ? second : first;
        show();
      });
    }
    for (const cell of all(".gt-cell")) {
      cell.addEventListener("click", () => choose(cell.dataset.a, cell.dataset.b));
    }
    document.getElementById("none").addEventListener("click", () => choose(names[0], names[0]));
    document.querySelector(".choose").hidden = false;
    choose(names[0], names[0]);
  };

  start();
  return { choose, names };
})();
