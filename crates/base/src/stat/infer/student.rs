//! Student's t by the incomplete beta function (NIST Digital Library of Mathematical Functions,
//! 8.17).

/// The continued fraction ends where a step changes it by less than this share.
const ENOUGH: f64 = 4e-16;
/// It takes about the root of its larger parameter in steps: this is for a million degrees.
const STEPS: u32 = 10_000;
/// The number that stands for 0 in its denominators (Lentz's method).
const TINY: f64 = 1e-300;

/// The `p` quantile of Student's t with `freedom` degrees of freedom (not only whole ones).
/// `None` unless `freedom` is above 0 and `p` lies between 0 and 1.
pub fn t_quantile(p: f64, freedom: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && freedom > 0.0 && freedom.is_finite()) {
        return None;
    }
    let tail = p.min(1.0 - p);
    let mut above = 1.0;
    while upper_tail(above, freedom) > tail {
        above *= 2.0;
        if above > 1e200 {
            return None;
        }
    }
    let mut below = 0.0;
    // Halved until no number lies between the two.
    loop {
        let middle = f64::midpoint(below, above);
        if middle <= below || middle >= above {
            break;
        }
        if upper_tail(middle, freedom) > tail { below = middle } else { above = middle }
    }
    Some(if p < 0.5 { -below } else { below })
}

/// How often t lies above `t`, which is not negative.
fn upper_tail(t: f64, freedom: f64) -> f64 {
    let square = t * t;
    let whole = freedom + square;
    incomplete_beta((freedom / whole, square / whole), freedom / 2.0, 0.5) / 2.0
}

/// The regularised incomplete beta function at the first of two numbers that make 1 together: given
/// both, since the smaller one would lose its digits in the difference.
fn incomplete_beta((x, rest): (f64, f64), a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let logs = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = (logs + a * x.ln() + b * rest.ln()).exp();
    // The fraction converges fast below the mean, and by symmetry above it.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(rest, b, a) / b
    }
}

/// The continued fraction 8.17.22, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let change = d * c;
        result *= change;
        if (change - 1.0).abs() < ENOUGH {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_degree_is_cauchy_s() {
        for p in [0.6, 0.75, 0.975, 0.999] {
            let cauchy = (std::f64::consts::PI * (p - 0.5)).tan();
            let ours = t_quantile(p, 1.0).unwrap();
            assert!((ours / cauchy - 1.0).abs() < 1e-12, "{p}: {ours} {cauchy}");
        }
    }

    #[test]
    fn it_is_symmetric_and_ends() {
        for freedom in [0.3, 1.0, 5.5, 1e6] {
            let (low, high) = (t_quantile(0.025, freedom), t_quantile(0.975, freedom));
            assert!((low.unwrap() / high.unwrap() + 1.0).abs() < 1e-9, "{freedom}");
        }
        assert!(t_quantile(0.5, 3.0).unwrap().abs() < 1e-15);
        for (p, freedom) in [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, f64::NAN), (0.9, -1.0)] {
            assert_eq!(t_quantile(p, freedom), None);
        }
    }
}
