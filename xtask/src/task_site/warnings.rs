//! A page for each warning of a record, out of the record's schema. A warning's id is its name in
//! records and in the column `warnings` of CSV.

use anyhow::Context as _;
use serde_json::Value;

/// The pages: `warnings.md`, then one for each.
pub(super) fn pages(schema: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let kinds = schema["$defs"]["Warning"]["oneOf"].as_array();
    let kinds = kinds.context("the schema has no warnings")?;
    let mut list = "# Warnings\n\nWhat `gpuio bench` warns of, by the names that records \
                    (`warnings`) and the column `warnings` of CSV have.\n\n| Warning | Meaning |\n\
                    | --- | --- |\n"
        .to_owned();
    let mut pages = Vec::new();
    for kind in kinds {
        let name = kind["properties"]["warning"]["const"].as_str();
        let name = name.context("a warning without a name")?;
        let meaning = kind["description"].as_str().context("a warning without a description")?;
        let row = meaning.replace('|', "\\|").replace('\n', " ");
        list.push_str(&format!("| [`{name}`](warning-{name}.md) | {row} |\n"));
        pages.push((format!("warning-{name}.md"), page(name, meaning, kind)));
    }
    pages.insert(0, ("warnings.md".to_owned(), list));
    Ok(pages)
}

fn page(name: &str, meaning: &str, kind: &Value) -> String {
    let mut page = format!("# Warning `{name}`\n\n{meaning}\n");
    let fields = kind["properties"].as_object().into_iter().flatten();
    let fields: Vec<_> = fields.filter(|(field, _)| *field != "warning").collect();
    if !fields.is_empty() {
        page.push_str("\n| Field in the record | Meaning |\n| --- | --- |\n");
    }
    for (field, about) in fields {
        let about = about["description"].as_str().unwrap_or_default().replace('|', "\\|");
        page.push_str(&format!("| `{field}` | {} |\n", about.replace('\n', " ")));
    }
    page.push_str(
        "\nThe text of the warning in a report says what it means for the result, with the \
         figures, and what to do.\n",
    );
    page
}
