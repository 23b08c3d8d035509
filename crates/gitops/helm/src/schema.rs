//! `values.schema.json`: whether values are what a chart's author expects.

mod check;
mod errors;
mod formats;

use std::fmt::Write;

use serde_json::Value as Json;

use crate::chart::Chart;
use crate::error::Error;
use crate::values::Table;

/// Checks the values of a chart and of its sub-charts.
pub(crate) fn validate(chart: &Chart, values: &Table) -> Result<(), Error> {
    let mut report = String::new();
    collect(chart, values, &mut report)?;
    match report.is_empty() {
        true => Ok(()),
        false => Err(Error::Schema(report)),
    }
}

fn collect(chart: &Chart, values: &Table, report: &mut String) -> Result<(), Error> {
    if let Some(schema) = &chart.schema {
        let mut complaints = String::new();
        match serde_json::from_slice::<Json>(schema) {
            Err(error) => {
                let _ = writeln!(
                    complaints,
                    "unable to validate schema: invalid character: {error}"
                );
            }
            Ok(schema) => match check::check(&schema, &Json::Object(values.clone())) {
                Err(error) => {
                    let _ = writeln!(complaints, "unable to validate schema: {error}");
                }
                Ok(found) => {
                    for complaint in found {
                        let _ = writeln!(complaints, "- {complaint}");
                    }
                }
            },
        }
        if !complaints.is_empty() {
            let _ = writeln!(report, "{}:\n{}", chart.name(), complaints.trim_end_matches('\n'));
        }
    }
    let empty = Table::new();
    for subchart in &chart.dependencies {
        let own = values
            .get(subchart.name())
            .and_then(Json::as_object)
            .unwrap_or(&empty);
        collect(subchart, own, report)?;
    }
    Ok(())
}
