//! Findings as JSON.

use crate::topo::Coherent;
use serde::Serialize;

use crate::check::prove::Proof;
use crate::check::{Finding, Verdict};

#[derive(Serialize)]
struct Output<'f> {
    schema: &'static str,
    findings: &'f [Finding],
    coherent: &'f [Coherent],
    verdict: Option<&'f Verdict>,
    proof: Option<&'f Proof>,
}

/// All of it in one object: `{"schema": "gpuio-check-v2", "findings": […], "coherent": […],
/// "verdict": …, "proof": …}`, the last two `null` where they were not requested.
pub fn render(
    findings: &[Finding],
    coherent: &[Coherent],
    verdict: Option<&Verdict>,
    proof: Option<&Proof>,
) -> String {
    let output = Output { schema: "gpuio-check-v2", findings, coherent, verdict, proof };
    gpuio_base::document::json_of(&output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{RULES, check, sample};

    #[test]
    fn every_finding_is_there_with_its_words() {
        let rules: Vec<_> = RULES.iter().collect();
        let findings = check(&sample::gpu_and_drive_below_a_switch(), &rules);
        let output: serde_json::Value =
            serde_json::from_str(&render(&findings, &[], None, None)).unwrap();
        assert_eq!(output["schema"], "gpuio-check-v2");
        assert!(output["verdict"].is_null() && output["proof"].is_null());
        assert_eq!(output["findings"].as_array().unwrap().len(), findings.len());
        assert_eq!(output["findings"][0]["rule"], findings[0].rule);
        assert_eq!(output["findings"][0]["severity"], findings[0].severity.word());
    }
}
