//! Custom resources: the columns that their definition asks for.

use serde::Serialize;
use serde_json::Value;

use crate::column::{AGE, NAME};
use crate::duration::{human_duration, unix_seconds};
use crate::field::{UNKNOWN, filled_or, name, number, text};

/// A column of a custom resource; serialises as a `TableColumnDefinition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CustomColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `boolean`, `number` or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The format, as the definition gives it.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0 for columns that are always shown; clients show others on demand.
    pub priority: i32,
    /// Where in the object the cell's value is; empty for the name.
    #[serde(skip)]
    pub json_path: String,
}

/// The columns of a custom resource: its name, and those of its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomColumns {
    columns: Vec<CustomColumn>,
}

impl CustomColumns {
    /// Reads a version's `additionalPrinterColumns`; without any, objects show their age.
    pub fn new(additional: Option<&Value>) -> Self {
        let mut columns = vec![CustomColumn {
            name: NAME.name.to_owned(),
            kind: NAME.kind.to_owned(),
            format: NAME.format.to_owned(),
            description: NAME.description.to_owned(),
            priority: 0,
            json_path: String::new(),
        }];
        match additional
            .and_then(Value::as_array)
            .filter(|list| !list.is_empty())
        {
            Some(list) => columns.extend(list.iter().map(custom_column)),
            None => columns.push(CustomColumn {
                name: AGE.name.to_owned(),
                kind: "date".to_owned(),
                format: String::new(),
                description: AGE.description.to_owned(),
                priority: 0,
                json_path: ".metadata.creationTimestamp".to_owned(),
            }),
        }
        Self { columns }
    }

    /// The columns, the name first.
    pub fn columns(&self) -> &[CustomColumn] {
        &self.columns
    }

    /// The cells of an object at the Unix time `now`. `find` gives the first value at a column's path in the object.
    pub fn row<'a>(
        &'a self,
        object: &'a Value,
        now: i64,
        mut find: impl FnMut(&'a CustomColumn, &'a Value) -> Option<&'a Value>,
    ) -> Vec<Value> {
        let mut cells = Vec::with_capacity(self.columns.len());
        cells.push(name(object));
        for column in self.columns.iter().skip(1) {
            cells.push(find(column, object).map_or(Value::Null, |value| cell(&column.kind, value, now)));
        }
        cells
    }
}

fn custom_column(definition: &Value) -> CustomColumn {
    let json_path = text(definition, "jsonPath").to_owned();
    let fallback = format!("Custom resource definition column (in JSONPath format): {json_path}");
    CustomColumn {
        name: text(definition, "name").to_owned(),
        kind: text(definition, "type").to_owned(),
        format: text(definition, "format").to_owned(),
        description: filled_or(definition, "description", &fallback).to_owned(),
        priority: i32::try_from(number(definition, "priority")).unwrap_or_default(),
        json_path,
    }
}

/// A value as a cell of a column's type; null where it is of another type.
fn cell(kind: &str, value: &Value, now: i64) -> Value {
    match (kind, value) {
        ("string", value) => printed(value).into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number
                .as_f64()
                .map_or(Value::Null, |float| (float.trunc() as i64).into()),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) if text.is_empty() => UNKNOWN.into(),
        ("date", Value::String(text)) => match unix_seconds(text) {
            Some(then) => human_duration(now.saturating_sub(then)).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

/// A value as text: lists and maps as JSON, everything else as Go prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// A float as Go prints it by default: with an exponent only where it is very small or very large.
fn go_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e21).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent
                .strip_prefix('-')
                .map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::CustomColumns;

    fn pointer<'a>(path: &str, object: &'a Value) -> Option<&'a Value> {
        object.pointer(&path.replace('.', "/"))
    }

    #[test]
    fn without_columns_the_age_is_shown() {
        let columns = CustomColumns::new(None);
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "1970-01-01T00:00:00Z"}});
        let row = columns.row(&object, 300, |column, object| pointer(&column.json_path, object));
        assert_eq!(row, [json!("x"), json!("5m")]);
        assert_eq!(CustomColumns::new(Some(&json!([]))), columns);
    }

    #[test]
    fn definitions_read_as_columns() {
        let columns = CustomColumns::new(Some(&json!([
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "format": "int32"},
            {"name": "Text", "type": "string", "jsonPath": ".spec.text", "description": "Some text"},
        ])));
        let want = json!([
            {"name": "Name", "type": "string", "format": "name", "description": "The object's name", "priority": 0},
            {"name": "Size", "type": "integer", "format": "int32", "priority": 1,
             "description": "Custom resource definition column (in JSONPath format): .spec.size"},
            {"name": "Text", "type": "string", "format": "", "priority": 0, "description": "Some text"},
        ]);
        assert_eq!(serde_json::to_value(columns.columns()).unwrap(), want);
    }

    #[test]
    fn cells_have_the_columns_type_or_are_null() {
        for (kind, value, want) in [
            ("string", json!("a"), json!("a")),
            ("string", json!(3), json!("3")),
            ("string", json!(0.5), json!("0.5")),
            ("string", json!(1e22), json!("1e+22")),
            ("string", json!(true), json!("true")),
            ("string", json!([1, "a"]), json!("[1,\"a\"]")),
            ("string", json!({"a": 1}), json!("{\"a\":1}")),
            ("string", json!(null), json!("<no value>")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.7), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("number", json!(0.5), json!(0.5)),
            ("number", json!("x"), json!(null)),
            ("boolean", json!(false), json!(false)),
            ("boolean", json!("true"), json!(null)),
            ("date", json!("1970-01-01T00:00:00Z"), json!("16m")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!(5), json!(null)),
            ("integer", json!(null), json!(null)),
        ] {
            let columns =
                CustomColumns::new(Some(&json!([{"name": "C", "type": kind, "jsonPath": ".spec.v"}])));
            let object = json!({"metadata": {"name": "x"}, "spec": {"v": value}});
            let row = columns.row(&object, 1000, |column, object| pointer(&column.json_path, object));
            assert_eq!(row, [json!("x"), want], "{kind} {value}");
        }
        let columns = CustomColumns::new(Some(
            &json!([{"name": "C", "type": "string", "jsonPath": ".spec.v"}]),
        ));
        assert_eq!(
            columns.row(&json!({"metadata": {"name": "x"}}), 0, |_, _| None),
            [json!("x"), json!(null)]
        );
    }
}
