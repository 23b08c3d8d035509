//! Sub-charts: which of them are used, under which names, and which of their values the parent takes over.

use fairway_text_gotemplate::sprig::semver::{Constraints, Version};
use serde_json::Value as Json;
use std::sync::Arc;

use crate::chart::Chart;
use crate::error::Error;
use crate::values::{Table, coalesce_tables, coalesce_values, table_at, value_at};

/// Whether a version meets a constraint; what cannot be read does not.
pub(crate) fn is_compatible(constraint: &str, version: &str) -> bool {
    let constraints = Constraints::parse(constraint);
    let version = Version::parse(version);
    constraints.is_ok_and(|constraints| version.is_ok_and(|version| constraints.check(&version)))
}

/// Sub-charts that a chart names and does not have.
pub(crate) fn check_present(chart: &Chart) -> Result<(), Error> {
    let missing: Vec<&str> = chart
        .metadata
        .dependencies
        .iter()
        .map(|wanted| wanted.name.as_str())
        .filter(|wanted| !chart.dependencies.iter().any(|found| found.name() == *wanted))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::MissingDependencies(missing.join(", "))),
    }
}

/// Settles the sub-charts of a chart for these values.
pub(crate) fn process(chart: &mut Chart, values: &Table, warnings: &mut Vec<String>) -> Result<(), Error> {
    enable(chart, values, "", warnings)?;
    import(chart, warnings)
}

fn enable(chart: &mut Chart, values: &Table, path: &str, warnings: &mut Vec<String>) -> Result<(), Error> {
    if !chart.metadata.has_dependencies {
        return Ok(());
    }
    let mut charts: Vec<Chart> = Vec::new();
    for existing in &chart.dependencies {
        let named = chart.metadata.dependencies.iter().any(|wanted| {
            existing.name() == wanted.name && is_compatible(&wanted.version, &existing.metadata.version)
        });
        if !named {
            charts.push(existing.clone());
        }
    }
    for wanted in &mut chart.metadata.dependencies {
        let found = chart.dependencies.iter().find(|existing| {
            existing.name() == wanted.name && is_compatible(&wanted.version, &existing.metadata.version)
        });
        if let Some(found) = found {
            let mut copy = found.clone();
            if !wanted.alias.is_empty() {
                let name = std::mem::replace(&mut copy.metadata.name, wanted.alias.clone());
                copy.renamed_from.get_or_insert(name);
            }
            charts.push(copy);
        }
        if !wanted.alias.is_empty() {
            wanted.name = wanted.alias.clone();
        }
        wanted.enabled = true;
    }
    chart.dependencies = charts;
    let coalesced = coalesce_values(chart, values.clone(), false, warnings)?;
    apply_tags(chart, &coalesced, warnings);
    apply_conditions(chart, &coalesced, path, warnings);

    let disabled: Vec<String> = chart
        .metadata
        .dependencies
        .iter()
        .filter(|wanted| !wanted.enabled)
        .map(|wanted| wanted.name.clone())
        .collect();
    chart
        .dependencies
        .retain(|subchart| !disabled.iter().any(|name| name == subchart.name()));
    for subchart in &mut chart.dependencies {
        let path = format!("{path}{}.", subchart.metadata.name);
        enable(subchart, &coalesced, &path, warnings)?;
    }
    chart.metadata.dependencies.retain(|wanted| wanted.enabled);
    Ok(())
}

fn apply_tags(chart: &mut Chart, values: &Table, warnings: &mut Vec<String>) {
    let Some(tags) = table_at(values, "tags") else {
        return;
    };
    for wanted in &mut chart.metadata.dependencies {
        let (mut any_true, mut any_false) = (false, false);
        for tag in &wanted.tags {
            match tags.get(tag) {
                Some(Json::Bool(true)) => any_true = true,
                Some(Json::Bool(false)) => any_false = true,
                Some(_) => {
                    let name = &wanted.name;
                    warnings.push(format!(
                        "Warning: Tag '{tag}' for chart {name} returned non-bool value"
                    ));
                }
                None => {}
            }
        }
        wanted.enabled = any_true || !any_false;
    }
}

fn apply_conditions(chart: &mut Chart, values: &Table, path: &str, warnings: &mut Vec<String>) {
    for wanted in &mut chart.metadata.dependencies {
        let conditions = wanted.condition.trim().to_owned();
        for condition in conditions.split(',').filter(|condition| !condition.is_empty()) {
            match value_at(values, &format!("{path}{condition}")) {
                Some(Json::Bool(value)) => {
                    wanted.enabled = *value;
                    break;
                }
                Some(_) => {
                    let name = &wanted.name;
                    warnings.push(format!(
                        "Warning: Condition path '{condition}' for chart {name} returned non-bool value"
                    ));
                }
                None => {}
            }
        }
    }
}

fn import(chart: &mut Chart, warnings: &mut Vec<String>) -> Result<(), Error> {
    for subchart in &mut chart.dependencies {
        import(subchart, warnings)?;
    }
    if !chart.metadata.has_dependencies {
        return Ok(());
    }
    let values = coalesce_values(chart, Table::new(), true, warnings)?;
    let mut imported = Table::new();
    for wanted in &chart.metadata.dependencies {
        for import in &wanted.import_values {
            let (child, parent) = match import {
                Json::String(name) => (format!("exports.{name}"), "."),
                Json::Object(pair) => match (pair.get("child"), pair.get("parent")) {
                    (Some(Json::String(child)), Some(Json::String(parent))) => {
                        (child.clone(), parent.as_str())
                    }
                    _ => {
                        return Err(Error::Chart(format!(
                            "import-values of {} must name a child and a parent",
                            wanted.name
                        )));
                    }
                },
                _ => continue,
            };
            let source = format!("{}.{child}", wanted.name);
            let Some(table) = table_at(&values, &source) else {
                warnings.push(format!(
                    "Warning: ImportValues missing table from chart {}: {source:?} is not a table",
                    wanted.name
                ));
                continue;
            };
            let mut nested = table.clone();
            if parent != "." {
                for name in parent.split('.').rev() {
                    nested = Table::from_iter([(name.to_owned(), Json::Object(nested))]);
                }
            }
            coalesce_tables(&mut imported, &nested, "", true, warnings);
        }
    }
    let mut merged = values;
    coalesce_tables(&mut merged, &imported, "", true, warnings);
    chart.values = Arc::new(merged);
    Ok(())
}
