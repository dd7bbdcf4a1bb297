//! The look of a page: on paper, on a narrow screen, and of texts beside marks.

use std::io::Read as _;

use gpuio_base::document;
use gpuio_record::Record;
use gpuio_report::compare::{Options, compare, render};
use gpuio_report::set::{Member, Set};
use gpuio_testkit::chromium;

use crate::browser::{nothing_wrong, page, with_browser};
use crate::compare::made::repeats;
use crate::records;

fn set(records: impl IntoIterator<Item = Record>) -> Set {
    let member = |(nth, record)| Member::new(format!("run-{nth}"), record);
    Set {
        title: "a page".to_owned(),
        members: records.into_iter().enumerate().map(member).collect(),
        ..Set::default()
    }
}

/// The first page of a browser's PDF: its drawing, and its height in points.
fn first_page(pdf: &[u8]) -> (String, f64) {
    let text = String::from_utf8_lossy(pdf);
    let page = text.split_once("<</Type /Page\n").expect("a page").1;
    let number = |behind: &str| {
        let rest = page.split_once(behind).expect(behind).1;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        rest[..end].to_owned()
    };
    let height = page.split_once("/MediaBox [0 0 ").unwrap().1.split([' ', ']']).nth(1).unwrap();
    let object = format!("\n{} 0 obj\n", number("/Contents "));
    let find = |from: usize, what: &[u8]| {
        from + pdf[from..].windows(what.len()).position(|one| one == what).expect("an object")
    };
    let begin = find(find(0, object.as_bytes()), b"stream\n") + b"stream\n".len();
    let mut drawing = Vec::new();
    flate2::read::ZlibDecoder::new(&pdf[begin..]).read_to_end(&mut drawing).unwrap();
    (String::from_utf8_lossy(&drawing).into_owned(), height.parse().unwrap())
}

/// How far down the lowest text of a drawing stands, as a share of the page.
fn filled((drawing, height): &(String, f64)) -> f64 {
    // Vertical scale and offset of the space in which is drawn.
    let (mut space, mut saved, mut lowest) = ((1.0, 0.0), Vec::new(), *height);
    for line in drawing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of = |nth: usize| words[nth].parse::<f64>().unwrap();
        match words.as_slice() {
            ["q"] => saved.push(space),
            ["Q"] => space = saved.pop().unwrap(),
            [_, _, _, _, _, _, "cm"] => space = (space.0 * of(3), space.0 * of(5) + space.1),
            [.., "Tm"] => lowest = lowest.min(space.0 * of(words.len() - 2) + space.1),
            _ => {}
        }
    }
    1.0 - lowest / height
}

#[test]
fn the_first_page_on_paper_is_filled() {
    with_browser(|browser| {
        let several = [records::host_quick(), records::staged_in_trouble(), records::ceilings()];
        let sets = [
            set([records::host_quick()]),
            set([records::ceilings()]),
            set([records::beside()]),
            set(several),
        ];
        for (nth, set) in sets.iter().enumerate() {
            let pdf = chromium::print(browser, "paper", &page(set));
            let filled = filled(&first_page(&pdf));
            assert!((0.7..1.0).contains(&filled), "page {nth}: {filled}");
        }
    });
}

#[test]
fn a_narrow_screen_has_the_first_plot_at_its_own_width() {
    with_browser(|browser| {
        let html = page(&set([records::ceilings()]));
        let steps = "const all = [...document.querySelectorAll('figure.main svg')];
            out.shown = all.map((one) => one.getBoundingClientRect().width > 0);
            out.sizes = all.map((one) => Number(one.getAttribute('viewBox').split(' ')[2]));
            out.over = document.documentElement.scrollWidth - innerWidth;";
        let at = |width| chromium::open_at(browser, "narrow", &html, steps, width);
        let [narrow, wide] = [500, 1300].map(at);
        [&narrow, &wide].into_iter().for_each(nothing_wrong);
        assert_eq!(narrow["shown"], serde_json::json!([false, true]), "{narrow}");
        assert_eq!(wide["shown"], serde_json::json!([true, false]), "{wide}");
        assert!(narrow["sizes"][1].as_f64().unwrap() < 500.0, "{narrow}");
        assert!(narrow["over"].as_f64().unwrap() <= 0.0, "{narrow}");
    });
}

/// Whatever the ceilings are, their marks stand beside texts.
#[test]
fn marks_of_ceilings_run_through_no_text() {
    with_browser(|browser| {
        let html = page(&set([records::ceilings()]));
        let steps = "gpuio.page.drawAll();
            const figure = gpuio.data.columns.get('throughput');
            const values = figure.values;
            out.crossed = [];
            for (let percent = 60; percent <= 180; percent += 2) {
              gpuio.data.columns.get('ceiling').values = values.map((one) => one * percent / 100);
              const bars = values.map((_, row) => gpuio.bar.of(figure, [row], `job ${row}`));
              const part = document.querySelector('figure.plot .bars');
              part.replaceChildren();
              gpuio.bar.draw(part, 'bars', bars, 500);
              out.marks = part.querySelectorAll('.ceiling').length;
              for (const bar of part.querySelectorAll('g')) {
                const [mark, text] = ['.ceiling', '.value'].map((one) => bar.querySelector(one));
                const [at, box] = [Number(mark.getAttribute('x1')), text.getBBox()];
                if (at > box.x - 2 && at < box.x + box.width) out.crossed.push(percent);
                if (box.x + box.width > 500) out.crossed.push(-percent);
              }
            }";
        let out = chromium::open(browser, "marks", &html, steps);
        nothing_wrong(&out);
        assert!(out["marks"].as_u64().unwrap() > 0, "{out}");
        assert_eq!(out["crossed"], serde_json::json!([]), "{out}");
    });
}

/// Loads without anything in common have bars, or where these are too many, a reason.
#[test]
fn records_with_nothing_in_common_have_no_empty_plots() {
    with_browser(|browser| {
        let other = |nth: u32| {
            let mut record = records::host_quick();
            record.started_at = format!("2026-01-01T00:00:{nth:02}Z");
            record.plan.jobs.truncate(1);
            record.jobs.truncate(1);
            let plan = &mut record.plan.jobs[0];
            (plan.threads, plan.depth) = (nth + 1, nth + 1);
            record
        };
        let steps = "gpuio.page.drawAll();
            out.kinds = [...document.querySelectorAll('figure.plot:not(.undrawn)')]
              .map((one) => one.dataset.kind);
            out.why = document.getElementById('undrawn').textContent;";
        for (most, drawn) in [(3, true), (20, true), (50, false)] {
            let html = page(&set((0..most).map(other)));
            let out = chromium::open(browser, "nothing", &html, steps);
            nothing_wrong(&out);
            let kinds = out["kinds"].to_string();
            assert_eq!(kinds.contains("axis"), drawn, "{most}: {out}");
            assert!(!kinds.contains("heat"), "{most}: {out}");
            let why = out["why"].as_str().unwrap();
            assert!(why.contains("at two values of an axis"), "{most}: {why}");
        }
    });
}

/// On screens of usual widths no cell of a table is cut off, however long its words.
#[test]
fn tables_fit_the_screens_of_desks() {
    with_browser(|browser| {
        let long = |mut record: Record| {
            for job in &mut record.jobs {
                if let Some(proof) = &mut job.proof {
                    proof.as_requested = false;
                    proof.verdict.words = "bounce (host), through the page cache".to_owned();
                }
            }
            record.plan.jobs[0].name = "random-reads-of-many-small-files-beside-others".to_owned();
            record
        };
        let all = [records::host_quick(), records::staged_in_trouble(), records::ceilings()];
        let report = page(&set(all.map(long)));
        let side = |name: &str, all: &[f64]| {
            let mut side = repeats(name, all);
            for run in &mut side.runs {
                run.job = Some("random-reads-of-many-small-files-beside-others".to_owned());
            }
            side
        };
        let few = [0.6, 1.0, 1.6, 1.1];
        let sides = [side("before", &few), side("after", &few)];
        let found = compare(&sides, &Options::default());
        let comparison = render(&found, document::find("html").unwrap(), 100);
        // This page allows no script, not even the one that measures it.
        let comparison = comparison.replace("Content-Security-Policy", "none");
        let steps = "out.over = [...document.querySelectorAll('.scroll')]
            .filter((one) => one.clientWidth > 0 && !one.querySelector('#rows'))
            .map((one) => one.scrollWidth - one.clientWidth);";
        for width in [1100, 1280, 1600] {
            for (name, html) in [("report", &report), ("compare", &comparison)] {
                let out = chromium::open_at(browser, name, html, steps, width);
                let over: Vec<f64> = serde_json::from_value(out["over"].clone()).unwrap();
                let fits = !over.is_empty() && over.iter().all(|one| *one <= 0.0);
                assert!(fits, "{width} {name}: {out}");
            }
        }
    });
}
