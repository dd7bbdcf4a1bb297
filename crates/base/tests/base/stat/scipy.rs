//! Intervals and tests against SciPy's answers on the same samples (`scipy/make.py`).

use gpuio_base::stat::infer::{Ratio, mean};
use gpuio_base::stat::infer::{
    geometric_mean, paired, predicted, rank_sum, spread, t_quantile, welch,
};
use serde_json::Value;

/// Relative difference that is allowed.
const CLOSE: f64 = 1e-9;

fn answers() -> Value {
    serde_json::from_str(include_str!("scipy/answers.json")).unwrap()
}

#[track_caller]
fn rows<'a>(answers: &'a Value, name: &str) -> &'a [Value] {
    let rows = answers[name].as_array().unwrap();
    assert!(rows.len() > 2, "{name}");
    rows
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn sample(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[track_caller]
fn close(ours: f64, theirs: f64) {
    let off = (ours - theirs).abs() / theirs.abs().max(1e-3);
    assert!(off < CLOSE, "{ours} is not {theirs}: off by {off}");
}

#[track_caller]
fn interval(ours: Ratio, theirs: &Value) {
    close(ours.low, number(&theirs[0]));
    close(ours.high, number(&theirs[1]));
}

#[test]
fn welch_on_logarithms() {
    for row in rows(&answers(), "welch") {
        let (a, b) = (sample(&row["a"]), sample(&row["b"]));
        let ours = welch(&a, &b, 0.95).unwrap();
        close(ours.ratio, number(&row["ratio"]));
        close(geometric_mean(&b).unwrap() / geometric_mean(&a).unwrap(), number(&row["ratio"]));
        close(ours.freedom, number(&row["freedom"]));
        interval(ours, &row["interval"]);
    }
}

#[test]
fn pairs() {
    for row in rows(&answers(), "paired") {
        let ours = paired(&sample(&row["a"]), &sample(&row["b"]), 0.95).unwrap();
        close(ours.freedom, number(&row["freedom"]));
        interval(ours, &row["interval"]);
    }
}

#[test]
fn one_run_against_several() {
    for row in rows(&answers(), "predicted") {
        let ours = predicted(number(&row["one"]), &sample(&row["many"]), false, 0.95).unwrap();
        interval(ours, &row["interval"]);
    }
}

#[test]
fn ranks() {
    for row in rows(&answers(), "ranks") {
        let ours = rank_sum(&sample(&row["a"]), &sample(&row["b"])).unwrap();
        close(ours.u, number(&row["u"]));
        close(ours.p, number(&row["p"]));
    }
}

#[test]
fn quantiles_of_t() {
    for row in rows(&answers(), "quantiles") {
        let ours = t_quantile(number(&row["p"]), number(&row["freedom"])).unwrap();
        let theirs = number(&row["t"]);
        assert!((ours - theirs).abs() <= CLOSE * theirs.abs().max(1.0), "{ours} {row}");
    }
    assert_eq!(t_quantile(1.0, 3.0), None);
    assert_eq!(t_quantile(0.5, 0.0), None);
}

#[test]
fn batch_means() {
    for row in rows(&answers(), "series") {
        let values = sample(&row["values"]);
        assert!(mean(&values).unwrap() > 0.0);
        let ours = spread(&values).unwrap();
        close(ours.relative, number(&row["relative"]));
        close(ours.freedom, number(&row["freedom"]));
    }
}
