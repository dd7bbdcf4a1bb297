//! The page keeps to the rule of one load in its figures, and says so where it draws none.

use gpuio_report::set::{Set, figured};
use serde_json::{Value, json};

use crate::browser::{nothing_wrong, open, page, with_browser};
use crate::one_load::{automatic, grid, run, set};

/// The axes that figures show and the values chosen for the rest, for the page and for the rule.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    (&["path", "block"], &[]),
    (&["block", "threads"], &[]),
    (&["block", "threads"], &[("path", "staged"), ("depth", "32")]),
    (&["path", "direction"], &[("block", "16M")]),
    (&["path", "direction"], &[("block", "8K")]),
    (&["depth"], &[]),
    (&[], &[]),
];

const REQUEST: &str = "out.held = CASES.map(([keys, chosen]) => {
  const made = gpuio.hold.rows(gpuio.data.shown(), keys, new Map(chosen));
  return [made.rows, made.held.map(({ axis, place }) => [axis.key, axis.words[place]])];
});
gpuio.page.drawAll();
await new Promise((done) => setTimeout(done, 300));
const figure = (kind) => document.querySelector(`figure.plot[data-kind='${kind}']`);
out.text = Object.fromEntries(['axis', 'bars', 'percentiles', 'heat'].map((kind) => [kind,
  figure(kind).textContent]));
out.bars = [...figure('bars').querySelectorAll('svg')].map((svg) =>
  [...svg.querySelectorAll('.name')].map((name) => name.textContent));
out.titles = [...figure('bars').querySelectorAll('h4')].map((head) => head.textContent);
out.cells = [...figure('heat').querySelectorAll('td')].map((cell) => cell.textContent);
out.keys = [...figure('axis').querySelectorAll('.key')].map((key) => key.textContent);
out.captions = [...document.querySelectorAll('figure.plot figcaption')].map((one) =>
  one.textContent);
const canvas = figure('axis').querySelector('.canvas');
if (canvas) {
  canvas.focus();
  canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
  out.said = document.getElementById('say').textContent;
}";

fn request(browser: &std::path::Path, name: &str, set: &Set) -> Value {
    let steps = REQUEST.replacen("CASES", &json!(CASES).to_string(), 1);
    let out = open(browser, name, &page(set), &steps);
    nothing_wrong(&out);
    out
}

fn words(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The script holds what the rule holds, and draws the same rows.
fn agrees(out: &Value, set: &Set) {
    for ((keys, chosen), held) in CASES.iter().zip(out["held"].as_array().unwrap()) {
        let rule = figured(set, keys, chosen);
        assert_eq!(*held, json!([rule.rows, rule.fixed]), "{keys:?} {chosen:?}");
    }
}

#[test]
fn plots_of_a_grid_are_of_one_load_each() {
    with_browser(|browser| {
        let set = grid();
        let out = request(browser, "grid", &set);
        agrees(&out, &set);
        // Six loads, two paths on each.
        assert_eq!(out["bars"].as_array().unwrap().len(), 6, "{out:#}");
        for bars in out["bars"].as_array().unwrap() {
            assert_eq!(words(bars), ["gather", "staged"]);
        }
        let titles = words(&out["titles"]);
        assert!(titles.contains(&"randread 4K, 2 threads, depth 32".to_owned()), "{titles:?}");
        assert_eq!(out["cells"].as_array().unwrap().len(), 6, "blocks by depths of one path");
        let captions = words(&out["captions"]);
        let one = |start: &str| captions.iter().find(|text| text.starts_with(start)).unwrap();
        assert!(
            one("Latency by").ends_with("· block size 4K · depth per thread 1"),
            "{captions:?}"
        );
        assert!(
            one("Latency, h").ends_with("· block size 4K · depth per thread 1"),
            "{captions:?}"
        );
        assert!(one("Two axes").ends_with("at once · gather"), "{captions:?}");
    });
}

#[test]
fn depths_that_gpuio_chose_make_one_line_and_stand_beside_bars_and_points() {
    with_browser(|browser| {
        let set = automatic();
        let out = request(browser, "automatic", &set);
        agrees(&out, &set);
        assert_eq!(words(&out["keys"]), ["gather", "gds"], "one line per path");
        let bars = words(&out["bars"][0]);
        assert_eq!(bars, ["gather at depth 384", "gds at depth 1"]);
        assert!(out["said"].as_str().unwrap().ends_with("at depth 384"), "{out:#}");
        for kind in ["axis", "bars", "percentiles", "heat"] {
            let text = out["text"][kind].as_str().unwrap();
            assert!(text.contains("Automatic depths differ"), "{kind}: {text}");
        }
        assert!(words(&out["cells"]).iter().any(|cell| cell.contains("at depth 96")), "{out:#}");
    });
}

#[test]
fn what_is_not_drawn_says_why_and_what_to_do() {
    with_browser(|browser| {
        let two = set(vec![run("gather", 4096, 384, false, 1.0), run("gds", 4096, 1, false, 1.0)]);
        let out = request(browser, "unlike", &two);
        agrees(&out, &two);
        assert_eq!(out["bars"], json!([]));
        let text = out["text"]["bars"].as_str().unwrap();
        let why = "Not drawn: no two paths ran the same load; they differ in depth per thread.";
        assert!(text.contains(why), "{text}");
        assert!(text.contains("Run the paths with the same values"), "{text}");
        let one = set(vec![run("gds", 4096, 1, false, 1.0)]);
        let out = request(browser, "one", &one);
        for kind in ["axis", "bars", "heat"] {
            let text = out["text"][kind].as_str().unwrap();
            assert!(text.contains("Not drawn: "), "{kind}: {text}");
        }
    });
}
