//! The page with the picture, in a real Chromium: the way between two devices is highlighted.

use gpuio_machine::topo::{Topology, format};
use gpuio_testkit::chromium;
use gpuio_testkit::machines::{DGX_2, read};
use serde_json::Value;

const STEPS: &str = "
const names = (kind) => [...document.querySelectorAll('.gt-node-box.on')].map((one) =>
  one.dataset.name);
const read = () => ({ boxes: names(), links: document.querySelectorAll('.gt-link.on').length,
  cells: [...document.querySelectorAll('.gt-cell.on text')].map((one) => one.textContent),
  answer: document.getElementById('answer').textContent });
out.options = document.querySelectorAll('#first option').length;
topology.choose('GPU0', 'nvme3n1');
out.near = read();
topology.choose('GPU0', 'GPU15');
out.far = read();
topology.choose('GPU0', 'GPU0');
out.none = read();
const click = (name) => document.querySelector(`[data-device=\"${name}\"]`)
  .dispatchEvent(new MouseEvent('click', { bubbles: true }));
click('GPU2');
click('mlx5_1');
out.clicked = read();
const svg = document.querySelector('svg.gt').getBoundingClientRect();
out.wide = [svg.width, document.documentElement.clientWidth];";

#[test]
fn the_way_between_two_devices_is_highlighted() {
    chromium::with_browser(|browser| {
        let machine = read(DGX_2);
        let topology = Topology::of(&machine, &[]);
        let out = chromium::open(browser, "way", &format::html(&machine, &topology), STEPS);
        chromium::nothing_wrong(&out);
        assert_eq!(out["options"], topology.devices.len());
        let words = |value: &Value| serde_json::from_value::<Vec<String>>(value.clone()).unwrap();
        let near = &out["near"];
        let mut boxes = words(&near["boxes"]);
        boxes.sort();
        assert_eq!(boxes, ["GPU0", "nvme3n1", "switch 2c:00.0", "switch 32:00.0"]);
        assert_eq!((&near["links"], words(&near["cells"])), (&3.into(), vec!["PXB".to_owned()]));
        let answer = near["answer"].as_str().unwrap();
        assert!(answer.contains("PXB, several PCIe switches"), "{answer}");
        assert!(answer.contains("meet at switch 2c:00.0"), "{answer}");
        assert!(answer.contains("Narrowest link: above nvme3n1, 3.9 GB/s"), "{answer}");
        // Between two processors: both ways up to their host bridges.
        let boxes = words(&out["far"]["boxes"]);
        assert!(boxes.contains(&"host 0000:2b".to_owned()), "{boxes:?}");
        assert_eq!(boxes.iter().filter(|name| name.starts_with("host")).count(), 2, "{boxes:?}");
        assert_eq!(words(&out["far"]["cells"]), ["SYS", "SYS"]);
        assert_eq!((&out["none"]["links"], words(&out["none"]["boxes"]).len()), (&0.into(), 0));
        let clicked = words(&out["clicked"]["boxes"]);
        assert!(clicked.contains(&"GPU2".to_owned()) && clicked.contains(&"mlx5_1".to_owned()));
        let wide: Vec<f64> = serde_json::from_value(out["wide"].clone()).unwrap();
        assert!(wide[0] <= wide[1] && wide[0] > 0.8 * wide[1], "it fills the window: {wide:?}");
    });
}

/// Names from outside can't become markup.
#[test]
fn a_hostile_name_is_text() {
    let mut machine = read(DGX_2);
    machine.nics[0].rdma[0].name = "</script><img src=x onerror=alert(1)>\"'".to_owned();
    let topology = Topology::of(&machine, &[]);
    let page = format::html(&machine, &topology);
    assert!(!page.contains("<img"), "it is markup");
    assert_eq!(page.matches("</script>").count(), 2);
}
