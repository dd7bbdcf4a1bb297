//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use crate::args::Show;
use crate::failure::Failure;
use crate::output::{self, Delivery};
use crate::terminal;
use crate::{formats, locale, records, unused};

pub(crate) fn run(show: &Show) -> Result<ExitCode, Failure> {
    let (requested, path) = (show.format.as_deref(), show.save.output.as_deref());
    let name = formats::of_file(requested, path, formats::RECORD_FILES)?;
    let row = output::find(name.unwrap_or("text"))?;
    locale::printed_as(row.name);
    unused::show(show, row)?;
    let delivery = Delivery::open(&show.save)?;
    let record = records::record(&show.record)?;
    if show.per_rank && record.ranks.is_none() {
        let what = "--per-rank: it has no effect here: the record is of one process; leave it out";
        return Err(Failure::Usage(what.to_owned()));
    }
    let parts =
        gpuio_report::format::text::Show { evidence: show.evidence, per_rank: show.per_rank };
    delivery.put(&(row.render)(&record, terminal::width(), parts))?;
    Ok(ExitCode::SUCCESS)
}
