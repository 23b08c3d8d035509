//! The text that definitions are kept in, and how it is read.
//!
//! ```text
//! kind Application applications application Namespaced v1alpha1 short=app,apps status
//! column string 0 .status.sync.status Sync Status
//! type Source
//!   repoURL! string
//!   helm Helm
//!   refs []Ref atomic
//! ```
//!
//! `also=v1alpha1` names versions that are served, too, in the same form.
//!
//! Kinds and their columns come first, so that names are found without reading the types. A kind's fields are those of
//! the type of its name. A field is a name (`!`: it must be there), a form and what holds for its values. Forms are
//! `string`, `boolean`, `integer`, `int64`, `int32`, `number`, `time`, `int-or-string`, `quantity`, `percent`, `object` (no fields
//! known), `open` (any fields), `any` (any value), `[]FORM`, `{}FORM` and names of types, which must not contain
//! themselves.
//!
//! What has no word here is written as JSON at the end of a line: `more={"minItems":1}` is laid over the schema of the field
//! or type.

use std::collections::HashMap;

/// A whole text, read.
#[derive(Debug, PartialEq)]
pub struct Table<'t> {
    /// Kinds, in the text's order.
    pub kinds: Vec<KindFacts<'t>>,
    /// Types by name.
    pub types: HashMap<&'t str, TypeFacts<'t>>,
}

/// What is known of a kind beside its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindFacts<'t> {
    /// `kind` of objects.
    pub kind: &'t str,
    /// In URLs.
    pub plural: &'t str,
    /// On the command line.
    pub singular: &'t str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The version.
    pub version: &'t str,
    /// Other versions that are served, in the same form.
    pub also: Vec<&'t str>,
    /// Abbreviations.
    pub short_names: Vec<&'t str>,
    /// Words that stand for several kinds, such as `all`.
    pub categories: Vec<&'t str>,
    /// There is `/status`.
    pub status: bool,
    /// Objects are encrypted at rest.
    pub sealed: bool,
    /// Columns of tables.
    pub columns: Vec<Column<'t>>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column<'t> {
    /// `string`, `date`, ...
    pub column_type: &'t str,
    /// Above 0: shown on demand.
    pub priority: i64,
    /// Where the value is.
    pub path: &'t str,
    /// The heading.
    pub name: &'t str,
}

/// A structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeFacts<'t> {
    /// It is owned as a whole.
    pub atomic: bool,
    /// Fields that are not listed are kept.
    pub open: bool,
    /// Null is a value.
    pub nullable: bool,
    /// What else its schema says, as JSON.
    pub more: Option<&'t str>,
    /// Its fields, in the text's order.
    pub fields: Vec<Field<'t>>,
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'t> {
    /// Its name.
    pub name: &'t str,
    /// Whether it must be there.
    pub required: bool,
    /// What it holds.
    pub form: Form<'t>,
    /// What else holds for its values.
    pub rules: Vec<Rule<'t>>,
}

/// What a value looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form<'t> {
    /// A scalar or something free, by its word.
    Simple(Simple),
    /// A list.
    List(Box<Self>),
    /// A map from texts.
    Map(Box<Self>),
    /// A structure.
    Type(&'t str),
}

/// Forms without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simple {
    /// Text.
    String,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A whole number of 64 bits.
    Int64,
    /// A whole number of 32 bits.
    Int32,
    /// A number.
    Number,
    /// A moment, as RFC 3339 writes it.
    Time,
    /// A whole number or a text.
    IntOrString,
    /// A whole number or a text that is an amount.
    Quantity,
    /// A text between 0 and 1.
    Percent,
    /// A map without known fields.
    Object,
    /// A map with any fields.
    Open,
    /// Any value.
    Any,
}

/// A limit on a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'t> {
    /// A list or map that is owned as a whole.
    Atomic,
    /// A list whose elements identify themselves.
    Set,
    /// A list whose elements these fields identify, separated by commas.
    Key(&'t str),
    /// Null is a value.
    Nullable,
    /// At most so many elements.
    MaxItems(u64),
    /// At least this number.
    Minimum(i64),
    /// At most this number.
    Maximum(i64),
    /// What it is if nobody says: a text.
    Default(&'t str),
    /// An expression that must hold, after what is said if it does not; the last of the rules.
    Check(&'t str, &'t str),
    /// One of these, separated by bars.
    Enum(&'t str),
    /// At least so many characters.
    MinLength(u64),
    /// At most so many characters.
    MaxLength(u64),
    /// A regular expression; the last of the rules, since it may have spaces.
    Pattern(&'t str),
    /// What else the schema says, as JSON; the last of the rules.
    More(&'t str),
}

/// What amounts look like.
pub const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// What shares of one look like.
pub const PERCENT: &str = r"^(0(?:\.\d{1,3})?|1)$";

const SIMPLE: [(&str, Simple); 13] = [
    ("string", Simple::String),
    ("boolean", Simple::Boolean),
    ("integer", Simple::Integer),
    ("int64", Simple::Int64),
    ("int32", Simple::Int32),
    ("number", Simple::Number),
    ("time", Simple::Time),
    ("int-or-string", Simple::IntOrString),
    ("quantity", Simple::Quantity),
    ("percent", Simple::Percent),
    ("object", Simple::Object),
    ("open", Simple::Open),
    ("any", Simple::Any),
];

impl<'t> Form<'t> {
    fn parse(text: &'t str) -> Self {
        if let Some(element) = text.strip_prefix("[]") {
            return Self::List(Box::new(Self::parse(element)));
        }
        if let Some(element) = text.strip_prefix("{}") {
            return Self::Map(Box::new(Self::parse(element)));
        }
        let simple = SIMPLE.iter().find(|(word, _)| *word == text);
        simple.map_or(Self::Type(text), |(_, simple)| Self::Simple(*simple))
    }
}

/// The kinds of a text, without its types.
pub fn kinds(text: &str) -> Result<Vec<KindFacts<'_>>, String> {
    let mut kinds: Vec<KindFacts<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("kind ") {
            kinds.push(kind(rest).ok_or_else(|| format!("not a kind: {line:?}"))?);
        } else if let Some(rest) = line.strip_prefix("column ") {
            let column = column(rest).ok_or_else(|| format!("not a column: {line:?}"))?;
            let kind = kinds.last_mut().ok_or("a column without a kind")?;
            kind.columns.push(column);
        } else if line.starts_with("type ") {
            break;
        }
    }
    Ok(kinds)
}

fn kind(rest: &str) -> Option<KindFacts<'_>> {
    let mut words = rest.split(' ');
    let mut found = KindFacts {
        kind: words.next()?,
        plural: words.next()?,
        singular: words.next()?,
        namespaced: match words.next()? {
            "Namespaced" => true,
            "Cluster" => false,
            _ => return None,
        },
        version: words.next()?,
        ..KindFacts::default()
    };
    for word in words {
        match (word, word.split_once('=')) {
            (_, Some(("short", names))) => found.short_names = names.split(',').collect(),
            (_, Some(("also", versions))) => found.also = versions.split(',').collect(),
            (_, Some(("in", names))) => found.categories = names.split(',').collect(),
            ("status", _) => found.status = true,
            ("sealed", _) => found.sealed = true,
            _ => return None,
        }
    }
    Some(found)
}

fn column(rest: &str) -> Option<Column<'_>> {
    let mut words = rest.splitn(4, ' ');
    Some(Column {
        column_type: words.next()?,
        priority: words.next()?.parse().ok()?,
        path: words.next()?,
        name: words.next()?,
    })
}

impl<'t> Table<'t> {
    /// Reads a text.
    ///
    /// # Errors
    /// A line is not in the form above, or a type is used that is not there.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let kinds = kinds(text)?;
        let mut types: HashMap<&str, TypeFacts<'_>> = HashMap::new();
        let mut current: Option<&str> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                let (rest, more) = match rest.split_once(" more=") {
                    Some((rest, more)) => (rest, Some(more)),
                    None => (rest, None),
                };
                let mut words = rest.split(' ');
                let name = words.next().unwrap_or_default();
                let mut facts = TypeFacts {
                    more,
                    ..TypeFacts::default()
                };
                for word in words {
                    match word {
                        "atomic" => facts.atomic = true,
                        "open" => facts.open = true,
                        "nullable" => facts.nullable = true,
                        _ => return Err(format!("not a type: {line:?}")),
                    }
                }
                if types.insert(name, facts).is_some() {
                    return Err(format!("type {name} is there twice"));
                }
                current = Some(name);
            } else if let Some(rest) = line.strip_prefix("  ") {
                let field = field(rest).ok_or_else(|| format!("not a field: {line:?}"))?;
                let facts = current.and_then(|name| types.get_mut(name));
                facts.ok_or("a field without a type")?.fields.push(field);
            }
        }
        let table = Self { kinds, types };
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<(), String> {
        let fields = self.types.values().flat_map(|facts| &facts.fields);
        let used = fields.filter_map(|field| named(&field.form));
        let wanted = self.kinds.iter().map(|kind| kind.kind).chain(used);
        let mut missing = wanted.filter(|name| !self.types.contains_key(name));
        match missing.next() {
            Some(name) => Err(format!("type {name} is used and not there")),
            None => Ok(()),
        }
    }
}

/// The type that a form leads to.
fn named<'t>(form: &Form<'t>) -> Option<&'t str> {
    match form {
        Form::Simple(_) => None,
        Form::List(element) | Form::Map(element) => named(element),
        Form::Type(name) => Some(name),
    }
}

fn field(rest: &str) -> Option<Field<'_>> {
    let (name, rest) = rest.split_once(' ')?;
    let (form, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut rules = Vec::new();
    while !rest.is_empty() {
        if let Some(pattern) = rest.strip_prefix("pattern=") {
            rules.push(Rule::Pattern(pattern));
            break;
        }
        if let Some(more) = rest.strip_prefix("more=") {
            rules.push(Rule::More(more));
            break;
        }
        if let Some(check) = rest.strip_prefix("check=") {
            let (message, expression) = check.split_once(" if not ")?;
            rules.push(Rule::Check(message, expression));
            break;
        }
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rules.push(match (word, word.split_once('=')) {
            ("atomic", _) => Rule::Atomic,
            ("set", _) => Rule::Set,
            ("nullable", _) => Rule::Nullable,
            (_, Some(("items", limit))) => Rule::MaxItems(limit.parse().ok()?),
            (_, Some(("least", limit))) => Rule::Minimum(limit.parse().ok()?),
            (_, Some(("most", limit))) => Rule::Maximum(limit.parse().ok()?),
            (_, Some(("default", text))) => Rule::Default(text),
            (_, Some(("key", key))) => Rule::Key(key),
            (_, Some(("enum", values))) => Rule::Enum(values),
            (_, Some(("min", limit))) => Rule::MinLength(limit.parse().ok()?),
            (_, Some(("max", limit))) => Rule::MaxLength(limit.parse().ok()?),
            _ => return None,
        });
        rest = after;
    }
    Some(Field {
        name: name.strip_suffix('!').unwrap_or(name),
        required: name.ends_with('!'),
        form: Form::parse(form),
        rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_machines_say_of_fields() {
        let text = "kind A as a Cluster v1 short=x in=all,some\ntype A nullable\n  \
                    a {}quantity nullable items=3 least=0 most=100 default=\n  b []string check=No way if not self.all(it, it)\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.kinds[0].categories, ["all", "some"]);
        let facts = &table.types["A"];
        assert!(facts.nullable);
        assert_eq!(
            facts.fields[0].form,
            Form::Map(Box::new(Form::Simple(Simple::Quantity)))
        );
        let rules = [
            Rule::Nullable,
            Rule::MaxItems(3),
            Rule::Minimum(0),
            Rule::Maximum(100),
            Rule::Default(""),
        ];
        assert_eq!(facts.fields[0].rules, rules);
        assert_eq!(facts.fields[1].rules, [Rule::Check("No way", "self.all(it, it)")]);
    }

    #[test]
    fn what_has_no_word_is_json() {
        let text = "type A nullable more={\"a\":\"b c\"}\n  a string min=1 more={\"default\":\"x y\"}\n";
        let table = Table::parse(text).unwrap();
        let facts = &table.types["A"];
        assert!(facts.nullable);
        assert_eq!(facts.more, Some("{\"a\":\"b c\"}"));
        assert_eq!(
            facts.fields[0].rules,
            [Rule::MinLength(1), Rule::More("{\"default\":\"x y\"}")]
        );
    }

    #[test]
    fn what_is_not_in_the_form_is_refused() {
        for (text, complaint) in [
            (
                "kind A as a Somewhere v1",
                "not a kind: \"kind A as a Somewhere v1\"",
            ),
            (
                "kind A as a Cluster v1 odd\ntype A",
                "not a kind: \"kind A as a Cluster v1 odd\"",
            ),
            ("kind A as a Cluster v1", "type A is used and not there"),
            ("column string 0 .a A", "a column without a kind"),
            (
                "kind A as a Cluster v1\ncolumn string x .a A",
                "not a column: \"column string x .a A\"",
            ),
            ("type A\ntype A", "type A is there twice"),
            ("type A odd", "not a type: \"type A odd\""),
            ("  a string", "a field without a type"),
            ("type A\n  a", "not a field: \"  a\""),
            ("type A\n  a string odd", "not a field: \"  a string odd\""),
            ("type A\n  a string min=x", "not a field: \"  a string min=x\""),
            ("type A\n  a []{}B", "type B is used and not there"),
        ] {
            assert_eq!(Table::parse(text).unwrap_err(), complaint, "{text:?}");
        }
    }

    #[test]
    fn a_field_has_its_rules() {
        let table =
            Table::parse("type A open atomic\n  a! []{}A set enum=x|y min=1 max=9 key=k pattern=^a b$\n");
        let table = table.unwrap();
        let facts = &table.types["A"];
        assert!(facts.open && facts.atomic);
        let expected = Field {
            name: "a",
            required: true,
            form: Form::List(Box::new(Form::Map(Box::new(Form::Type("A"))))),
            rules: vec![
                Rule::Set,
                Rule::Enum("x|y"),
                Rule::MinLength(1),
                Rule::MaxLength(9),
                Rule::Key("k"),
                Rule::Pattern("^a b$"),
            ],
        };
        assert_eq!(facts.fields, [expected]);
    }
}
