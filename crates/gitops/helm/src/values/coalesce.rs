//! How the defaults of charts come under the values of users: the user's value counts, a null takes a default away,
//! tables are merged, and `global` flows down to the sub-charts.

use serde_json::Value as Json;

use super::Table;
use crate::chart::Chart;
use crate::error::Error;

const GLOBAL: &str = "global";

fn join(prefix: &str, name: &str) -> String {
    match prefix.is_empty() {
        true => name.to_owned(),
        false => format!("{prefix}.{name}"),
    }
}

/// The values of a chart and its sub-charts. With `keep_nulls`, nulls take nothing away.
pub(crate) fn coalesce_values(
    chart: &Chart,
    mut values: Table,
    keep_nulls: bool,
    warnings: &mut Vec<String>,
) -> Result<Table, Error> {
    coalesce(chart, &mut values, "", keep_nulls, warnings)?;
    Ok(values)
}

fn coalesce(
    chart: &Chart,
    values: &mut Table,
    prefix: &str,
    keep_nulls: bool,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    defaults(chart, values, prefix, keep_nulls, warnings);
    let prefix = join(prefix, chart.name());
    for subchart in &chart.dependencies {
        let name = subchart.name();
        let globals = values.get(GLOBAL).cloned();
        match values
            .entry(name.to_owned())
            .or_insert_with(|| Json::Object(Table::new()))
        {
            Json::Object(own) => {
                flow_down(own, globals.as_ref(), &prefix, warnings);
                coalesce(subchart, own, &prefix, keep_nulls, warnings)?;
            }
            _ => {
                return Err(Error::Values(format!(
                    "type mismatch on {name}: a sub-chart's values must be a table"
                )));
            }
        }
    }
    Ok(())
}

fn flow_down(own: &mut Table, globals: Option<&Json>, prefix: &str, warnings: &mut Vec<String>) {
    let empty = Table::new();
    let globals = match globals {
        None => &empty,
        Some(Json::Object(globals)) => globals,
        Some(_) => {
            warnings.push(format!(
                "warning: skipping globals because source {GLOBAL} is not a table."
            ));
            return;
        }
    };
    let Json::Object(target) = own.entry(GLOBAL).or_insert_with(|| Json::Object(Table::new())) else {
        warnings.push(format!(
            "warning: skipping globals because destination {GLOBAL} is not a table."
        ));
        return;
    };
    for (key, value) in globals {
        match (value, target.get(key)) {
            (Json::Object(table), Some(Json::Object(existing))) => {
                // The parent's win; nulls stay.
                let mut merged = table.clone();
                coalesce_tables(&mut merged, existing, &join(prefix, key), true, warnings);
                target.insert(key.clone(), Json::Object(merged));
            }
            (Json::Object(_), Some(_)) => {
                warnings.push(format!(
                    "Conflict: cannot merge map onto non-map for {key:?}. Skipping."
                ));
            }
            (_, Some(Json::Object(_))) if !value.is_object() => {
                warnings.push(format!("key {key} is table. Skipping"));
            }
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

fn defaults(chart: &Chart, values: &mut Table, prefix: &str, keep_nulls: bool, warnings: &mut Vec<String>) {
    let prefix = join(prefix, chart.name());
    for (key, default) in chart.values.iter() {
        match values.get_mut(key) {
            None => {
                values.insert(key.clone(), default.clone());
            }
            Some(Json::Null) if !keep_nulls => {
                values.shift_remove(key);
            }
            Some(Json::Object(own)) => match default {
                Json::Object(default) => {
                    // What a sub-chart's nulls mean is decided when the sub-chart is reached.
                    let is_subchart = chart.dependencies.iter().any(|subchart| subchart.name() == key);
                    let prefix = join(&prefix, key);
                    coalesce_tables(own, default, &prefix, keep_nulls || is_subchart, warnings);
                }
                Json::Null => {}
                _ => warnings.push(format!("warning: skipped value for {prefix}.{key}: Not a table.")),
            },
            Some(_) => {}
        }
    }
}

/// Adds to a table what it lacks.
pub(crate) fn coalesce_tables(
    into: &mut Table,
    from: &Table,
    prefix: &str,
    keep_nulls: bool,
    warnings: &mut Vec<String>,
) {
    for (key, value) in from {
        let shown = |value: &Json| {
            fairway_text_gotemplate::fmt::print_bounded(&fairway_text_gotemplate::value::from_json(value))
        };
        match (into.get_mut(key), value) {
            (None, value) => {
                into.insert(key.clone(), value.clone());
            }
            (Some(Json::Null), _) if !keep_nulls => {
                into.shift_remove(key);
            }
            (Some(Json::Object(own)), Json::Object(other)) => {
                coalesce_tables(own, other, &join(prefix, key), keep_nulls, warnings);
            }
            (Some(_), Json::Object(_)) => {
                let full = join(prefix, key);
                warnings.push(format!(
                    "warning: cannot overwrite table with non table for {full} ({})",
                    shown(value)
                ));
            }
            (Some(Json::Object(_)), value) if !value.is_null() => {
                let full = join(prefix, key);
                warnings.push(format!(
                    "warning: destination for {full} is a table. Ignoring non-table value ({})",
                    shown(value)
                ));
            }
            _ => {}
        }
    }
}
