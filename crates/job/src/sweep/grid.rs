//! From axes to points.

use crate::sweep::{Axis, Condition, ConditionError};

/// How axes are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every value with every other.
    Full,
    /// From a base point of first values, one axis at a time.
    OneAtATime,
}

/// All points that meet `condition`, one value for each axis, in the order of a nested loop, the
/// first axis slowest. `shared` are keys and values that all points share.
///
/// # Errors
/// If the condition can't be evaluated for a point.
pub fn grid(
    axes: &[Axis],
    mode: Mode,
    condition: Option<&Condition>,
    shared: &[(String, String)],
) -> Result<Vec<Vec<String>>, ConditionError> {
    let mut points: Vec<Vec<String>> = vec![Vec::new()];
    for axis in axes {
        let longer = |point: &Vec<String>| {
            let point = point.clone();
            axis.values.iter().map(move |value| {
                let mut point = point.clone();
                point.push(value.clone());
                point
            })
        };
        points = points.iter().flat_map(longer).collect();
    }
    if mode == Mode::OneAtATime {
        let moved = |point: &Vec<String>| {
            axes.iter().zip(point).filter(|(axis, at)| axis.values.first() != Some(*at)).count()
        };
        points.retain(|point| moved(point) <= 1);
    }
    let Some(condition) = condition else { return Ok(points) };
    let mut kept = Vec::new();
    for point in points {
        let own = axes.iter().map(|axis| axis.key.clone()).zip(point.iter().cloned());
        let known: Vec<(String, String)> = own.chain(shared.iter().cloned()).collect();
        if condition.holds(&known)? {
            kept.push(point);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        ["bs=4k,64k", "depth=1,8,32"].map(|text| Axis::parse(text).unwrap()).into()
    }

    #[test]
    fn a_nested_loop() {
        let points = grid(&axes(), Mode::Full, None, &[]).unwrap();
        assert_eq!(points.len(), 6);
        assert_eq!((points[0].join(" "), points[1].join(" ")), ("4k 1".into(), "4k 8".into()));
        assert_eq!(points[3], ["64k", "1"]);
    }

    #[test]
    fn one_axis_at_a_time() {
        let points = grid(&axes(), Mode::OneAtATime, None, &[]).unwrap();
        let points: Vec<String> = points.iter().map(|point| point.join(" ")).collect();
        assert_eq!(points, ["4k 1", "4k 8", "4k 32", "64k 1"]);
    }

    #[test]
    fn conditions_see_axes_and_what_all_share() {
        let condition = Condition::parse("bs*depth*threads<=512k").unwrap();
        let shared = [("threads".to_owned(), "2".to_owned())];
        let points = grid(&axes(), Mode::Full, Some(&condition), &shared).unwrap();
        assert_eq!(points.len(), 4, "{points:?}");
    }
}
