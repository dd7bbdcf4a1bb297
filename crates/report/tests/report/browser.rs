//! The page in a real Chromium, without a window: it opens without errors or requests, plots are
//! drawn, tool tips and filters answer, and its numbers are the record's.

use std::path::Path;

use gpuio_base::stat::Percentile;
use gpuio_record::Record;
use gpuio_report::format::json;
use gpuio_report::set::{Member, Picture, Set, find_set_format, ticks_of_rates};
use serde_json::Value;

use crate::one_load::automatic;
use crate::records;
use gpuio_testkit::chromium;
pub(crate) use gpuio_testkit::chromium::{nothing_wrong, with_browser};

/// A member for each record, named by number.
fn set(records: Vec<Record>) -> Set {
    let member = |(nth, record)| Member::new(format!("run-{nth}"), record);
    Set {
        title: "a page".to_owned(),
        members: records.into_iter().enumerate().map(member).collect(),
        ..Set::default()
    }
}

pub(crate) fn page(set: &Set) -> String {
    (find_set_format("html").unwrap().render)(set)
}

/// Keeps the table as it was written, before the page's scripts draw it anew.
const KEEP: &str = "<script>
window.cells = () => [...document.querySelectorAll('#rows tbody tr')].map((row) =>
  [...row.cells].map((cell) => cell.textContent));
window.written = cells();
</script><script type=\"application/json\" id=\"figures\">";

/// Opens a report, and keeps its table as it was written.
pub(crate) fn open(browser: &Path, name: &str, html: &str, steps: &str) -> Value {
    let figures = "<script type=\"application/json\" id=\"figures\">";
    chromium::open(browser, name, &html.replacen(figures, KEEP, 1), steps)
}

fn all_records() -> Vec<Record> {
    vec![
        records::host_quick(),
        records::staged_in_trouble(),
        records::software(),
        records::many_jobs(),
        records::ceilings(),
    ]
}

/// Counts inked pixels of each canvas.
const INKED: &str = "gpuio.page.drawAll();
await new Promise((done) => setTimeout(done, 500));
out.ink = [...document.querySelectorAll('figure.plot canvas')].map((canvas) => {
  const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let inked = 0;
  for (let at = 3; at < all.length; at += 4) if (all[at]) inked += 1;
  return inked;
});
out.bars = document.querySelectorAll('.bars rect').length;
out.heat = document.querySelectorAll('.heat td').length;
out.table = cells();
out.written = written;
out.rates = gpuio.data.columns.get('throughput').values;
out.p99 = gpuio.data.columns.get('p99').values;";

#[test]
fn it_opens_without_requests_and_its_numbers_are_the_records() {
    with_browser(|browser| {
        let set = set(all_records());
        let out = open(browser, "numbers", &page(&set), INKED);
        nothing_wrong(&out);
        let ink = out["ink"].as_array().unwrap();
        assert!(ink.len() >= 3 && out["bars"].as_u64().unwrap() > 20, "{out:#}");
        assert!(ink.iter().all(|inked| inked.as_u64().unwrap() > 1000), "{ink:?}");
        assert!(out["heat"].as_u64().unwrap() > 0, "{out:#}");
        // The scripts draw, cell for cell, the table that was written.
        assert_eq!(out["table"], out["written"]);
        let (rates, p99) = figures(&set);
        assert_eq!(serde_json::from_value::<Vec<f64>>(out["rates"].clone()).unwrap(), rates);
        assert_eq!(serde_json::from_value::<Vec<Option<f64>>>(out["p99"].clone()).unwrap(), p99);
    });
}

/// Bytes per second and 99th percentiles in the order of rows.
fn figures(set: &Set) -> (Vec<f64>, Vec<Option<f64>>) {
    let mut rates = Vec::new();
    let mut p99 = Vec::new();
    for member in &set.members {
        for (plan, job) in member.record.plan.jobs.iter().zip(&member.record.jobs) {
            let reads = (plan.read_percent > 0).then_some(&job.read);
            let writes = (plan.read_percent < 100).then_some(&job.write);
            for side in [reads, writes].into_iter().flatten() {
                rates.push(side.bytes_per_s);
                p99.push(side.latency.as_ref().map(|legs| legs.total.p99_ns.unwrap() as f64));
            }
        }
    }
    (rates, p99)
}

/// The scripts' own rounding is that of `gpuio_base::units`, ties included.
/// A median of some runs of a load is none: plots leave the load out, as the table does, and say
/// so.
#[test]
fn a_load_of_which_a_run_has_no_figure_is_left_out_of_plots() {
    with_browser(|browser| {
        let html = page(&set(vec![records::host_quick(); 3]));
        let steps = "const { data } = gpuio;
            const points = data.figures.point_of;
            const rows = data.shown().filter((row) => points[row] === points[0]);
            const figure = data.columns.get('p99');
            const bar = () => gpuio.bar.of(figure, rows, 'a');
            const notes = () => [...document.querySelectorAll('p.quiet')]
              .filter((one) => one.textContent.includes('Left out: 1 load,')).length;
            gpuio.page.drawAll();
            out.whole = [rows.length, bar().values.length, data.complete('p99').length, notes()];
            figure.values[rows[1]] = null;
            data.search('');
            // It draws with the next picture of the screen.
            await new Promise((done) => setTimeout(done, 500));
            out.partly = [bar().values.length, data.complete('p99').length, notes() > 0];
            out.words = bar().none;";
        let out = open(browser, "partly", &html, steps);
        nothing_wrong(&out);
        let rows = 3 * figures(&set(vec![records::host_quick()])).0.len();
        assert_eq!(out["whole"], serde_json::json!([3, 3, rows, 0]), "{out:#}");
        assert_eq!(out["partly"], serde_json::json!([0, rows - 3, true]), "{out:#}");
        assert_eq!(out["words"], "no figure: 2 of 3 runs have one");
    });
}

#[test]
fn scripts_print_numbers_as_the_program_does() {
    with_browser(|browser| {
        let mut values: Vec<f64> = vec![0.0, 0.5, 1023.4, 1023.5, 1024.0, 999.5, 9.995, 99.95];
        values.extend([1125.0, 1135.0, 12_250.0, 12_350.0, 1.125 * 1024.0, 2.625 * 1_048_576.0]);
        values.extend((0..400).map(|n| 1.37f64.powi(n % 90) * f64::from(n + 1) / 7.0));
        let record = records::host_quick();
        let html = page(&set(vec![record]));
        let units = ["bytes/s", "1/s", "ns", "cores"];
        let steps = format!(
            "out.printed = {}.map((unit) => {}.map((value) => gpuio.format.print(unit, value)));
             gpuio.format.si();
             out.si = ['bytes/s', 'B'].map((unit) => gpuio.format.print(unit, 1.5e9));",
            serde_json::to_string(&units).unwrap(),
            serde_json::to_string(&values).unwrap()
        );
        let out = open(browser, "format", &html, &steps);
        nothing_wrong(&out);
        assert_eq!(out["si"], serde_json::json!(["1.50 GB/s", "1.50 GB"]));
        let printed: Vec<Vec<String>> = serde_json::from_value(out["printed"].clone()).unwrap();
        let rules: [fn(f64) -> String; 4] = [
            gpuio_base::units::human_rate,
            gpuio_base::units::human_count,
            gpuio_base::units::human_ns,
            gpuio_base::units::human_count,
        ];
        for (rule, printed) in rules.iter().zip(printed) {
            let ours: Vec<String> = values.iter().map(|value| rule(*value)).collect();
            assert_eq!(printed, ours);
        }
    });
}

/// The ticks of the page's plots are those of the static one.
#[test]
fn scripts_draw_the_ticks_of_the_program() {
    with_browser(|browser| {
        let mut cases = vec![(0.0, 0.0, false, 5.0), (0.0, 1.95 * 1_073_741_824.0, false, 3.0)];
        for nth in 0..120_i32 {
            let low = 1.37f64.powi(nth % 90) * f64::from(nth + 1) / 7.0;
            for times in [1.0, 3.0, 11.0, 900.0, 1e7] {
                cases.push((0.0, low * times, false, 5.0));
                cases.push((low, low * times, true, 3.0 + f64::from(nth % 4)));
            }
        }
        let html = page(&set(vec![records::host_quick()]));
        let steps = format!(
            "out.ticks = {}.map(([low, high, log, about]) =>
               gpuio.format.ticks('bytes/s', low, high, log, about).map((tick) => tick.text));",
            serde_json::to_string(&cases).unwrap()
        );
        let out = open(browser, "ticks", &html, &steps);
        nothing_wrong(&out);
        let drawn: Vec<Vec<String>> = serde_json::from_value(out["ticks"].clone()).unwrap();
        assert_eq!(drawn.len(), cases.len());
        for ((low, high, log, about), drawn) in cases.into_iter().zip(drawn) {
            assert_eq!(drawn, ticks_of_rates(low, high, log, about), "{low} to {high}");
        }
    });
}

const ANSWERS: &str = "gpuio.page.drawAll();
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (ready) => {
  for (let tries = 0; tries < 200 && !ready(); tries += 1) await wait(50);
};
await wait(200);
const [, against] = document.querySelectorAll('figure.plot select');
against.value = 'block';
against.dispatchEvent(new Event('change'));
const plot = document.querySelector('figure.plot .canvas');
plot.focus();
plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
out.keyTip = document.getElementById('tip').textContent;
out.said = document.getElementById('say').textContent;
plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
out.tipGone = document.getElementById('tip').hidden;
out.before = cells().length;
const box = [...document.querySelectorAll('.chip')].find((chip) => chip.dataset.path === 'host');
box.querySelector('input').click();
out.after = cells().length;
out.hosts = cells().filter((row) => row[1] === 'host').length;
box.querySelector('input').click();
const head = document.querySelector('th[data-key=\"throughput\"] button');
head.click();
out.sorted = [...document.querySelectorAll('#rows tbody tr')].map((row) =>
  Number(row.querySelector('td.n').title));
document.getElementById('theme').click();
out.light = document.documentElement.dataset.theme;
document.getElementById('theme').click();
out.dark = document.documentElement.dataset.theme;
await wait(300);
// A plot that is drawn anew, for its size or the theme, has its table folded again.
await until(() => {
  const fold = document.querySelector('.plot details');
  if (fold) fold.open = true;
  return document.querySelector('.plot details table');
});
out.plotTable = document.querySelector('.plot details table').rows.length;
const saved = gpuio.picture.svgText(gpuio.picture.ofFigure(document.querySelector('figure.plot')));
const read = new DOMParser().parseFromString(saved, 'image/svg+xml');
out.picture = { root: read.documentElement.nodeName, odd: /NaN|undefined|Infinity/.test(saved),
  lines: read.querySelectorAll('path').length, dots: read.querySelectorAll('circle').length,
  texts: [...read.querySelectorAll('text')].map((one) => one.textContent) };
const heat = gpuio.picture.ofFigure(document.querySelector('figure.plot[data-kind=\"heat\"]'));
out.heatCells = heat.querySelectorAll('rect').length;
const png = await gpuio.picture.png(gpuio.picture.ofFigure(document.querySelector('figure.plot')));
out.png = [...png].slice(0, 4);
out.pngBytes = png.length;
dispatchEvent(new Event('beforeprint'));
const papers = () => [...document.querySelectorAll('figure.plot .paper')].filter((one) =>
  one.querySelector('path, circle')).length;
const canvases = () =>
  [...document.querySelectorAll('figure.plot:not(.undrawn) .canvas')].length;
const printable = () => papers() > 0 && papers() === canvases();
// A plot that is drawn anew meanwhile, for its size or the theme, has no picture for this print.
for (let tries = 0; tries < 50 && !printable(); tries += 1) {
  dispatchEvent(new Event('afterprint'));
  await wait(100);
  dispatchEvent(new Event('beforeprint'));
  await wait(100);
}
out.paper = papers();
out.canvases = canvases();
out.open = [...document.querySelectorAll('details.fold')].filter((one) => one.open)
  .map((one) => one.id);
dispatchEvent(new Event('afterprint'));
out.after_print = document.querySelectorAll('.paper').length;
document.querySelector('a[href=\"#findings\"]').click();
out.findings = document.getElementById('findings').open;
out.csv = gpuio.page.csv().split('\\n').length;
const packed = document.getElementById('records').textContent;
const stream = new Blob([gpuio.page.bytes(packed)]).stream();
out.records = await new Response(stream.pipeThrough(new DecompressionStream('gzip'))).text();";

#[test]
fn tips_filters_order_theme_and_files_answer() {
    with_browser(|browser| {
        let set = set(all_records());
        let out = open(browser, "answers", &page(&set), ANSWERS);
        nothing_wrong(&out);
        let tip = out["keyTip"].as_str().unwrap();
        assert!(tip.contains("/s"), "no rate in the tip: {tip}");
        assert!(out["said"].as_str().unwrap().contains("/s"), "{out:#}");
        assert_eq!(out["tipGone"], true);
        let rows = figures(&set).0.len();
        assert_eq!(out["before"], rows);
        assert!(out["after"].as_u64().unwrap() < rows as u64, "{}", out["after"]);
        assert_eq!(out["hosts"], 0);
        let sorted: Vec<f64> = serde_json::from_value(out["sorted"].clone()).unwrap();
        assert!(sorted.is_sorted_by(|a, b| a >= b), "{sorted:?}");
        assert_eq!((&out["light"], &out["dark"]), (&"light".into(), &"dark".into()));
        assert!(out["plotTable"].as_u64().unwrap() > 1);
        pictures(&out);
        assert_eq!(out["csv"], rows + 2);
        // As text, since a script's numbers lose digits above 2^53.
        let packed: Vec<Value> = serde_json::from_str(out["records"].as_str().unwrap()).unwrap();
        assert_eq!(packed.len(), set.members.len());
        for (packed, member) in packed.iter().zip(&set.members) {
            let record = json::parse(&packed["record"].to_string()).unwrap();
            assert!(record == member.record, "{} is another record", member.name);
        }
    });
}

/// The saved and printed picture is the one that is drawn: the same lines, dots and ticks as
/// vectors.
fn pictures(out: &Value) {
    let picture = &out["picture"];
    assert_eq!((&picture["root"], &picture["odd"]), (&"svg".into(), &false.into()), "{picture}");
    assert!(picture["lines"].as_u64().unwrap() > 0 || picture["dots"].as_u64().unwrap() > 0);
    let texts: Vec<String> = serde_json::from_value(picture["texts"].clone()).unwrap();
    assert!(texts.iter().any(|text| text.contains("Throughput")), "{texts:?}");
    assert!(texts.iter().any(|text| text.ends_with("iB/s")), "no ticks: {texts:?}");
    assert!(out["heatCells"].as_u64().unwrap() > 2, "{out:#}");
    assert_eq!(out["png"], serde_json::json!([0x89, 0x50, 0x4e, 0x47]));
    assert!(out["pngBytes"].as_u64().unwrap() > 3000, "{}", out["pngBytes"]);
    assert!(out["paper"].as_u64().unwrap() > 0, "{out:#}");
    assert_eq!(out["paper"], out["canvases"], "a vector picture for each canvas");
    let open: Vec<String> = serde_json::from_value(out["open"].clone()).unwrap();
    assert!(open.contains(&"environment".to_owned()), "{open:?}");
    assert_eq!((&out["after_print"], &out["findings"]), (&0.into(), &true.into()));
}

/// A table with more columns than its place has room for shows them below one another, also on
/// paper: nothing is out of sight there.
#[test]
fn tables_with_many_percentiles_are_whole_on_screen_and_paper() {
    with_browser(|browser| {
        let mut record = records::host_quick();
        for plan in &mut record.plan.jobs {
            plan.percentiles =
                (1..40).map(|at| Percentile::parse(&at.to_string()).unwrap()).collect();
        }
        let steps = "const wait = () => new Promise((done) => setTimeout(done, 300));
            const whole = (of) => { const table = document.querySelector(of);
              return [table.scrollWidth <= table.parentElement.clientWidth + 1,
                table.classList.contains('cards'), table.tBodies[0].textContent.length > 1000]; };
            out.screen = whole('table.summary');
            out.label = document.querySelector('table.summary td:nth-child(9)').dataset.head;
            dispatchEvent(new Event('beforeprint'));
            await wait();
            out.paper = ['table.summary', '#rows'].map(whole);
            const label = document.querySelector('#rows td:nth-child(9)').dataset.head;
            dispatchEvent(new Event('afterprint'));
            await wait();
            const rows = document.getElementById('rows');
            out.after = [Boolean(label), rows.classList.contains('cards')];";
        let out = open(browser, "many", &page(&set(vec![record])), steps);
        nothing_wrong(&out);
        assert_eq!(out["screen"], serde_json::json!([true, true, true]), "{out:#}");
        assert!(out["label"].as_str().unwrap().starts_with('p'), "{out:#}");
        let both = serde_json::json!([[true, true, true], [true, true, true]]);
        assert_eq!(out["paper"], both, "{out:#}");
        assert_eq!(out["after"], serde_json::json!([true, false]), "{out:#}");
        let html = page(&set(vec![records::host_quick()]));
        let out = open(browser, "few", &html, steps);
        assert_eq!(out["screen"][1], false, "few columns stay a table: {out:#}");
        // A row and its remark stay on one page of paper.
        assert!(html.contains("tr:has(+ .note) { break-after: avoid; }"));
    });
}

/// Lines join marks that differ in nothing but the axis, also in pictures for paper, whose short
/// axes have their whole labels.
#[test]
fn marks_that_differ_in_more_than_the_axis_are_not_joined() {
    with_browser(|browser| {
        let steps = "gpuio.page.drawAll();
            await new Promise((done) => setTimeout(done, 500));
            dispatchEvent(new Event('beforeprint'));
            const figure = document.querySelector('figure.plot[data-figure=\"throughput\"]');
            const picture = figure.querySelector('.paper');
            out.lines = [...picture.querySelectorAll('path')]
              .map((path) => path.getAttribute('d').split('M').length - 1);
            out.note = figure.textContent;
            const box = Number(picture.getAttribute('viewBox').split(' ')[3]);
            out.labels = [...picture.querySelectorAll('text[transform]')]
              .map(({ textContent }) => [textContent, textContent.length * 6.6 < box]);";
        let out = open(browser, "joined", &page(&automatic()), steps);
        nothing_wrong(&out);
        let mut lines: Vec<u64> = serde_json::from_value(out["lines"].clone()).unwrap();
        lines.sort_unstable();
        assert_eq!(lines, [1, 3], "{out:#}");
        let words = "Marks that also differ in depth per thread are not joined.";
        assert!(out["note"].as_str().unwrap().contains(words), "{out:#}");
        let labels: Vec<(String, bool)> = serde_json::from_value(out["labels"].clone()).unwrap();
        assert!(!labels.is_empty() && labels.iter().all(|(_, fits)| *fits), "{labels:?}");
    });
}

#[test]
fn a_hostile_record_runs_nothing() {
    with_browser(|browser| {
        let hostile = "</script><script>window.caught=1</script><img src=x onerror=caught=2>\"'>";
        let mut record = records::many_jobs();
        for (plan, job) in record.plan.jobs.iter_mut().zip(&mut record.jobs) {
            plan.name = format!("{hostile}{}", plan.name);
            job.name.clone_from(&plan.name);
            plan.path.choice.actual = hostile.to_owned();
        }
        record.command = vec![hostile.to_owned()];
        record.started_at = hostile.to_owned();
        record.plan_text = hostile.to_owned();
        record.host.cpu.model = Some(hostile.to_owned());
        record.warnings[..].iter_mut().for_each(|warning| warning.text = hostile.to_owned());
        let mut set = set(vec![record.clone(), record]);
        set.title = hostile.to_owned();
        set.members[0].at = vec![(hostile.to_owned(), hostile.to_owned())];
        set.left_out = vec![hostile.to_owned()];
        set.topology = Picture::Svg {
            svg: "<svg xmlns='http://www.w3.org/2000/svg' onload='caught=3'><text>x</text></svg>"
                .to_owned(),
            about: hostile.to_owned(),
        };
        let steps = format!("{INKED} out.caught = window.caught || 0; out.title = document.title;");
        let out = open(browser, "hostile", &page(&set), &steps);
        assert_eq!(out["seen"], Value::Array(Vec::new()), "{out:#}");
        assert_eq!(out["caught"], 0);
        assert_eq!(out["title"], hostile);
        assert_eq!(out["table"], out["written"]);
    });
}

const TIME: &str = "gpuio.page.drawAll();
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
await wait(300);
const figure = document.querySelector('figure.plot[data-kind=\"time\"]');
const keys = () => [...figure.querySelectorAll('.key')].map((key) => key.textContent);
const ink = () => [...figure.querySelectorAll('canvas')].map((canvas) => {
  const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let at = 0; at < all.length; at += 4) {
    if (all[at + 3] > 250) seen.add((all[at] << 16) | (all[at + 1] << 8) | all[at + 2]);
  }
  return seen.size;
});
out.titles = [...figure.querySelectorAll('h4')].map((head) => head.textContent);
out.keys = keys();
out.ink = ink();
out.note = figure.textContent;
const series = gpuio.data.series();
const job = series.jobs['0/0'];
const group = series.groups[job.group];
out.group = group;
const joined = gpuio.time.together(job, group, new Set(['nvme0n1']));
out.seconds = joined.seconds;
const drive = joined.lines.find((line) => line.label === 'nvme0n1 read');
out.drive = drive.values.map((value) => (value === undefined ? 'none' : value));
out.own = joined.lines.find((line) => line.label === 'the job: read').values;
const canvas = figure.querySelector('.canvas');
canvas.focus();
canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
out.tip = document.getElementById('tip').textContent;
[...figure.querySelectorAll('.chip')].find((chip) => chip.textContent === 'nvme0n1')
  .querySelector('input').click();
await wait(100);
out.fewer = keys();
const apart = gpuio.time.places([[1, 2], [1.5, 2.5, 2.51]]);
out.apart = [apart.seconds, apart.of];";

/// The devices stand on the job's time axis with the record's figures, and can be chosen.
#[test]
fn devices_are_drawn_beside_the_job_on_one_time_axis() {
    with_browser(|browser| {
        let record = records::beside();
        let out = open(browser, "beside", &page(&set(vec![record.clone()])), TIME);
        nothing_wrong(&out);
        let words = |key: &str| serde_json::from_value::<Vec<String>>(out[key].clone()).unwrap();
        assert_eq!(
            words("titles"),
            [
                "throughput",
                "I/Os per second",
                "latency in each interval",
                "share of time",
                "number",
                "memory"
            ]
        );
        let keys = words("keys");
        for key in [
            "the job: read",
            "nvme0n1 read",
            "nvme0n1 busy",
            "nvme0n1 queue",
            "GPU0 PCIe received (last 20 ms)",
            "CPUs, all (32 CPUs) system",
        ] {
            assert!(keys.iter().any(|known| known == key), "no {key}: {keys:?}");
        }
        assert!(!keys.iter().any(|key| key.contains("nvme1n1")), "zero all the way: {keys:?}");
        let ink: Vec<u64> = serde_json::from_value(out["ink"].clone()).unwrap();
        assert!(ink.len() == 6 && ink.iter().all(|colours| *colours > 1), "{ink:?}");
        on_one_axis(&out, &record);
        let tip = out["tip"].as_str().unwrap();
        assert!(tip.contains("nvme0n1 read") && tip.contains("the job: read"), "{tip}");
        let fewer = words("fewer");
        assert!(!fewer.iter().any(|key| key.contains("nvme0n1")), "{fewer:?}");
        assert!(fewer.contains(&"the job: read".to_owned()), "{fewer:?}");
        assert!(out["note"].as_str().unwrap().contains("also other programs"), "{out:#}");
        // Clocks whose ends are far from each other keep their own places.
        let apart = serde_json::json!([[1, 1.5, 2, 2.5, 2.51], [[0, 2], [1, 3, 4]]]);
        assert_eq!(out["apart"], apart);
    });
}

/// Places are shared, values are the record's to four digits, and what is not known is a gap.
fn on_one_axis(out: &Value, record: &Record) {
    let numbers = |key: &str| serde_json::from_value::<Vec<Option<f64>>>(out[key].clone()).unwrap();
    let points = &record.jobs[0].series;
    assert_eq!(numbers("seconds").len(), points.len(), "ends near each other share a place");
    let group = &record.watched.as_ref().unwrap().groups[0];
    let figures = &group.devices[0].figures;
    let drive = figures.iter().find(|one| one.key == "read_bytes_per_second").unwrap();
    let near = |shown: Option<f64>, real: Option<f64>| match (shown, real) {
        (Some(shown), Some(real)) => (shown / real - 1.0).abs() < 1e-3,
        (shown, real) => shown == real,
    };
    for (shown, real) in numbers("drive").iter().zip(&drive.values) {
        assert!(near(*shown, *real), "{shown:?} for {real:?}");
    }
    for (shown, point) in numbers("own").iter().zip(points) {
        let real = point.read_bytes as f64;
        assert!(near(*shown, Some(real)), "{shown:?} for {real}");
    }
}
