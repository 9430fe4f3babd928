//! The configuration file as a JSON schema, for editors. Invariant: derived from the type that reads
//! the file.

use anyhow::Context as _;

use crate::settings::FileConfig;

pub(super) fn render_schema() -> anyhow::Result<String> {
    let schema = schemars::schema_for!(FileConfig);
    let text = serde_json::to_string_pretty(&schema).context("could not render the schema")?;
    Ok(text + "\n")
}
