"use strict";
// Numbers as people read them: the rules of gpuio_base::units, so that table and plots agree.
const gpuio = {};

gpuio.format = (() => {
  const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const DECIMAL = ["", "k", "M", "G", "T"];
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

  const UNITS = {
    "bytes/s": (value) => scaled(value, 1024, BINARY.map((unit) => unit + "/s")),
    "1/s": (value) => scaled(value, 1000, DECIMAL),
    "count": (value) => scaled(value, 1000, DECIMAL),
    "ns": (value) => scaled(value, 1000, TIME),
    "µs/MiB": (value) => scaled(value * 1000, 1000, TIME),
    "cores": (value) => scaled(value, 1000, DECIMAL),
    "%": percent,
    "share": (value) => (value === 0 ? "0" : value.toPrecision(3)) + " %",
    "B": (value) => scaled(value, 1024, BINARY),
    "s": (value) => scaled(value * 1e9, 1000, TIME),
    "W": (value) => scaled(value, 1000, DECIMAL) + " W",
  };

  // Of a value in a unit; null where there is none.
  const print = (unit, value) => {
    if (value === null || value === undefined) return "-";
    return (UNITS[unit] || String)(value);
  };

  // Suffix of a figure whose text has no unit.
  const SUFFIX = { "1/s": " IOPS", "µs/MiB": "/MiB", "cores": " CPUs", "%": " %" };
  const full = (unit, value) => {
    const text = print(unit, value);
    return text === "-" ? text : text + (SUFFIX[unit] || "");
  };

  // The text of a tick, without digits that say nothing: "2 GiB/s", not "2.00 GiB/s".
  const tick = (unit, value) => print(unit, value).replace(/^(-?\d+)\.(\d*?)0+(?=\D|$)/, (_, whole, rest) =>
    (rest ? `${whole}.${rest}` : whole));

  // Steps of an axis in powers of two are right for bytes, in tens for the rest.
  const base = (unit) => (unit === "bytes/s" || unit === "B" ? 1024 : 1000);

  return { print, tick, full, base };
})();
