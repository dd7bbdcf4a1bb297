"use strict";
// Numbers as people read them: the rules of gpuio_base::units, so that table and plots agree.
const gpuio = {};

gpuio.format = (() => {
  const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const DECIMAL = ["", "k", "M", "G", "T"];
  const DECIMAL_BYTES = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  const TIME = ["ns", "µs", "ms", "s"];

  // As Rust rounds: a number that lies in the middle goes to the even digit.
  const fixed = (value, digits) => {
    const scale = 10 ** digits;
    const down = Math.floor(value * scale);
    // In binary only halves, quarters and eighths lie truly in the middle of none, one or two digits.
    const middle = value * scale - down === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
    return (middle ? (down % 2 === 0 ? down : down + 1) / scale : value).toFixed(digits);
  };

  const threeDigits = (value, base) => {
    if (value >= 99.95 || (base && Number.isInteger(value))) return fixed(value, 0);
    return value >= 9.995 ? fixed(value, 1) : fixed(value, 2);
  };

  const scaled = (value, base, units) => {
    if (!Number.isFinite(value)) return "n/a";
    let left = Math.abs(value);
    let step = 0;
    while (left >= base - 0.5 && step + 1 < units.length) {
      left /= base;
      step += 1;
    }
    const number = threeDigits(left, step === 0);
    return (value < 0 ? "-" : "") + number + (units[step] ? " " : "") + units[step];
  };

  const percent = (value) => {
    if (value < 10) return fixed(value, 1);
    if (value < 99 || value >= 101) return fixed(value, 0);
    const tenths = value < 100 ? Math.floor(value * 10) : Math.ceil(value * 10);
    return tenths === 1000 ? "100" : fixed(tenths / 10, 1);
  };

  const bytes = (base, names) => ({
    "bytes/s": [base, names.map((name) => name + "/s"), 1],
    "B": [base, names, 1],
  });

  // For each unit its base, the names of its powers, and how many of the first are one of it.
  const POWERS = {
    ...bytes(1024, BINARY),
    "1/s": [1000, DECIMAL, 1],
    "count": [1000, DECIMAL, 1],
    "cores": [1000, DECIMAL, 1],
    "W": [1000, DECIMAL.map((name) => name + "W"), 1],
    "ns": [1000, TIME, 1],
    "µs/MiB": [1000, TIME, 1000],
    "s": [1000, TIME, 1e9],
    "%": [Infinity, ["%"], 1],
    "share": [Infinity, ["%"], 1],
  };

  // Of a value in a unit; null where there is none.
  const print = (unit, value) => {
    if (value === null || value === undefined) return "-";
    if (unit === "%") return percent(value);
    if (unit === "share") return (value === 0 ? "0" : value.toPrecision(3)) + " %";
    if (!POWERS[unit]) return String(value);
    const [base, names, times] = POWERS[unit];
    return scaled(value * times, base, names);
  };

  // Suffix of a figure whose text has no unit.
  const SUFFIX = { "1/s": " IOPS", "µs/MiB": "/MiB", "cores": " CPUs", "%": " %" };
  const full = (unit, value) => {
    const text = print(unit, value);
    return text === "-" ? text : text + (SUFFIX[unit] || "");
  };

  const ten = (power) => Number(`1e${power}`);

  // The power of ten at or below a value.
  const decade = (value) => {
    let power = 0;
    while (power > -300 && ten(power) > value) power -= 1;
    while (power < 300 && ten(power + 1) <= value) power += 1;
    return power;
  };

  // 1, 2 and 5 of each decade, or of more than twice as many as wanted decades alone.
  const logarithmic = (low, high, about) => {
    const [first, last] = [decade(low), decade(high) + 1];
    const of = (kept, stride) => {
      const found = [];
      for (let power = first; power < last + stride; power += stride) {
        for (const step of kept) found.push([step * ten(power), Math.max(0, -power)]);
      }
      while (found.length > 2 && found[1][0] <= low) found.shift();
      while (found.length > 2 && found.at(-2)[0] > high) found.pop();
      return found;
    };
    const found = of([1, 2, 5], 1);
    return found.length <= 2 * about ? found : of([1], Math.ceil((last - first) / (2 * about)));
  };

  // Multiples of 1, 2 or 5 of a decade, about so many.
  const linear = (low, high, about) => {
    const rough = (high - low) / about || 1;
    const power = decade(rough);
    const step = [1, 2, 5, 10].find((one) => one * ten(power) >= rough) * ten(power);
    const digits = Math.max(0, step >= ten(power + 1) ? -power - 1 : -power);
    const first = Math.floor(low / step);
    const last = Math.max(first + 1, Math.ceil((high + (high - low) * 0.02) / step));
    return Array.from({ length: last - first + 1 }, (_, nth) => [(first + nth) * step, digits]);
  };

  // The ticks of an axis, as values with their texts: round numbers in one unit, the first at or below
  // the lowest value and the last above the highest. The rule of `set/plot/ticks.rs`.
  const ticks = (unit, low, high, log, about) => {
    const [base, names, times] = POWERS[unit] || [Infinity, [""], 1];
    const size = log ? high / 5 : Math.max(Math.abs(low), Math.abs(high));
    let [one, step] = [1 / times, 0];
    while (step + 1 < names.length && size / one >= base - 0.5) {
      one *= base;
      step += 1;
    }
    const found = log ? logarithmic(low / one, high / one, about) : linear(low / one, high / one, about);
    return found.map(([value, digits]) => ({ at: value * one,
      text: value === 0 ? "0" : value.toFixed(digits) + (names[step] ? " " : "") + names[step] }));
  };

  // Whether an axis is logarithmic: its values are above 0 and span more than a factor of ten.
  const wide = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return low > 0 && Number.isFinite(high) && high / low > 10;
  };

  // Sizes and rates in powers of 1000 from now on.
  const si = () => Object.assign(POWERS, bytes(1000, DECIMAL_BYTES));

  return { print, full, ticks, wide, si };
})();
