//! What filters are for, for who writes templates: each with an example whose result is what the test beside says.

/// A filter, explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// As it is written behind the bar.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The types of what goes in and of what comes out, as JSON Schema calls them; `any` is any.
    pub types: (&'static str, &'static str),
    /// What it can be given in brackets, as it is called, with the type.
    pub arguments: &'static [(&'static str, &'static str)],
    /// An expression that uses it.
    pub example: &'static str,
    /// What that prints.
    pub result: &'static str,
}

const fn about(
    name: &'static str,
    description: &'static str,
    types: (&'static str, &'static str),
    arguments: &'static [(&'static str, &'static str)],
    example: &'static str,
    result: &'static str,
) -> About {
    About {
        name,
        description,
        types,
        arguments,
        example,
        result,
    }
}

const TEXT: (&str, &str) = ("string", "string");
const LIST: (&str, &str) = ("array", "array");

/// All of them, by name.
pub const ABOUT: &[About] = &[
    about(
        "abs",
        "The number without its sign.",
        ("number", "number"),
        &[],
        "-3 | abs",
        "3",
    ),
    about(
        "batch",
        "Lists of so many items each; the last is filled up if something to fill with is given.",
        LIST,
        &[("count", "number"), ("fill", "any")],
        "[1, 2, 3] | batch(2) | dump",
        "[[1,2],[3]]",
    ),
    about(
        "capitalize",
        "The first letter large, the others small.",
        TEXT,
        &[],
        "'wEB app' | capitalize",
        "Web app",
    ),
    about(
        "center",
        "The text in the middle of so many letters.",
        TEXT,
        &[("width", "number")],
        "'a' | center(3)",
        " a ",
    ),
    about(
        "d",
        "The same as default.",
        ("any", "any"),
        &[("default", "any"), ("boolean", "boolean")],
        "missing | d('x')",
        "x",
    ),
    about(
        "default",
        "Another value where there is none; with true as the second argument also where it counts as false.",
        ("any", "any"),
        &[("default", "any"), ("boolean", "boolean")],
        "'' | default('x', true)",
        "x",
    ),
    about(
        "dictsort",
        "The pairs of a map in the order of their keys, or of their values.",
        ("object", "array"),
        &[("case_sensitive", "boolean"), ("by", "string")],
        "{b: 1, a: 2} | dictsort | dump",
        "[[\"a\",2],[\"b\",1]]",
    ),
    about(
        "dump",
        "The value as JSON.",
        ("any", "string"),
        &[("spaces", "number")],
        "{a: [1]} | dump",
        "{\"a\":[1]}",
    ),
    about("e", "The same as escape.", TEXT, &[], "'<a>' | e", "&lt;a&gt;"),
    about(
        "escape",
        "The text for HTML: what has a meaning there is spelled out.",
        TEXT,
        &[],
        "'<a>' | escape",
        "&lt;a&gt;",
    ),
    about(
        "first",
        "The first item.",
        ("array", "any"),
        &[],
        "['a', 'b'] | first",
        "a",
    ),
    about(
        "float",
        "The number that a text is; else what is given.",
        ("any", "number"),
        &[("default", "any")],
        "'3.5' | float",
        "3.5",
    ),
    about(
        "forceescape",
        "The same as escape.",
        TEXT,
        &[],
        "'&' | forceescape",
        "&amp;",
    ),
    about(
        "groupby",
        "A map of lists: items by the value of a field.",
        ("array", "object"),
        &[("attr", "string")],
        "[{k: 'a'}, {k: 'b'}, {k: 'a'}] | groupby('k') | dump",
        "{\"a\":[{\"k\":\"a\"},{\"k\":\"a\"}],\"b\":[{\"k\":\"b\"}]}",
    ),
    about(
        "indent",
        "Each line but the first moved to the right.",
        TEXT,
        &[("width", "number"), ("indentfirst", "boolean")],
        "'a\\nb' | indent(2)",
        "a\n  b",
    ),
    about(
        "int",
        "The whole number that a text begins with; else what is given.",
        ("any", "number"),
        &[("default", "any")],
        "'3.7' | int",
        "3",
    ),
    about(
        "join",
        "The items as one text, with something between them; of maps a field.",
        ("array", "string"),
        &[("delimiter", "string"), ("attribute", "string")],
        "['a', 'b'] | join('-')",
        "a-b",
    ),
    about(
        "jsonify",
        "The same as dump.",
        ("any", "string"),
        &[("spaces", "number")],
        "['a'] | jsonify",
        "[\"a\"]",
    ),
    about(
        "last",
        "The last item.",
        ("array", "any"),
        &[],
        "['a', 'b'] | last",
        "b",
    ),
    about(
        "length",
        "How many items, pairs or letters there are.",
        ("any", "number"),
        &[],
        "['a', 'b'] | length",
        "2",
    ),
    about(
        "list",
        "The letters of a text, or the pairs of a map, as a list.",
        ("any", "array"),
        &[],
        "'ab' | list | dump",
        "[\"a\",\"b\"]",
    ),
    about("lower", "All letters small.", TEXT, &[], "'ABC' | lower", "abc"),
    about(
        "nl2br",
        "A tag of HTML before each end of a line.",
        TEXT,
        &[],
        "'a\\nb' | nl2br",
        "a<br />\nb",
    ),
    about(
        "parseEntityRef",
        "The kind, the namespace and the name of an entity, from a reference or from a map of which parts may be missing. Case is kept.",
        ("any", "object"),
        &[("context", "object")],
        "'group:default/team' | parseEntityRef | dump",
        "{\"kind\":\"group\",\"namespace\":\"default\",\"name\":\"team\"}",
    ),
    about(
        "parseRepoUrl",
        "The host, the owner and the name of a repository, from what RepoUrlPicker answers.",
        ("string", "object"),
        &[],
        "'git.example.com?owner=team&repo=web' | parseRepoUrl | dump",
        "{\"repo\":\"web\",\"host\":\"git.example.com\",\"owner\":\"team\"}",
    ),
    about(
        "pick",
        "A field of a map.",
        ("object", "any"),
        &[("key", "string")],
        "{name: 'web'} | pick('name')",
        "web",
    ),
    about(
        "projectSlug",
        "The owner and the name of a repository, from what RepoUrlPicker answers.",
        TEXT,
        &[],
        "'git.example.com?owner=team&repo=web' | projectSlug",
        "team/web",
    ),
    about(
        "reject",
        "The items that a test does not hold for; without one, those that count as false.",
        LIST,
        &[("test", "string")],
        "[1, 2, 3] | reject('odd') | dump",
        "[2]",
    ),
    about(
        "rejectattr",
        "The maps in which a field counts as false.",
        LIST,
        &[("attr", "string")],
        "[{n: 'a', on: true}, {n: 'b'}] | rejectattr('on') | join(',', 'n')",
        "b",
    ),
    about(
        "replace",
        "The text with one part in the place of another; a pattern without g is replaced once.",
        TEXT,
        &[("old", "any"), ("new_", "string"), ("maxCount", "number")],
        "'a.b' | replace('.', '-')",
        "a-b",
    ),
    about(
        "reverse",
        "The other way round.",
        ("any", "any"),
        &[],
        "['a', 'b'] | reverse | join",
        "ba",
    ),
    about(
        "round",
        "The number with so many digits, by the method common, ceil or floor.",
        ("number", "number"),
        &[("precision", "number"), ("method", "string")],
        "4.25 | round(1, 'ceil')",
        "4.3",
    ),
    about("safe", "The text as it is.", TEXT, &[], "'<a>' | safe", "<a>"),
    about(
        "select",
        "The items that a test holds for; without one, those that count as true.",
        LIST,
        &[("test", "string")],
        "[1, 2, 3] | select('odd') | dump",
        "[1,3]",
    ),
    about(
        "selectattr",
        "The maps in which a field counts as true.",
        LIST,
        &[("attr", "string")],
        "[{n: 'a', on: true}, {n: 'b'}] | selectattr('on') | join(',', 'n')",
        "a",
    ),
    about(
        "slice",
        "So many lists of about the same length.",
        LIST,
        &[("count", "number")],
        "[1, 2, 3] | slice(2) | dump",
        "[[1,2],[3]]",
    ),
    about(
        "sort",
        "The items in order, the other way round if wanted, by a field if they are maps.",
        LIST,
        &[
            ("reverse", "boolean"),
            ("case_sensitive", "boolean"),
            ("attribute", "string"),
        ],
        "['b', 'a'] | sort | join",
        "ab",
    ),
    about(
        "string",
        "The value as text.",
        ("any", "string"),
        &[],
        "7 | string | dump",
        "\"7\"",
    ),
    about(
        "striptags",
        "The text without tags of HTML.",
        TEXT,
        &[],
        "'<b>a</b>' | striptags",
        "a",
    ),
    about(
        "sum",
        "The sum of the items, or of a field of theirs, and of what it begins with.",
        ("array", "number"),
        &[("attribute", "string"), ("start", "number")],
        "[1, 2] | sum",
        "3",
    ),
    about(
        "title",
        "The first letter of each word large.",
        TEXT,
        &[],
        "'my web app' | title",
        "My Web App",
    ),
    about(
        "trim",
        "The text without space around it.",
        TEXT,
        &[],
        "' a ' | trim",
        "a",
    ),
    about(
        "truncate",
        "The text cut to so many letters, between words unless that is not wanted, with an ending.",
        TEXT,
        &[("length", "number"), ("killwords", "boolean"), ("end", "string")],
        "'long text that goes on' | truncate(9)",
        "long text...",
    ),
    about("upper", "All letters large.", TEXT, &[], "'abc' | upper", "ABC"),
    about(
        "urlencode",
        "The text for addresses; a map becomes a query.",
        ("any", "string"),
        &[],
        "'a b/c' | urlencode",
        "a%20b%2Fc",
    ),
    about(
        "wordcount",
        "How many words there are.",
        ("string", "number"),
        &[],
        "'one two' | wordcount",
        "2",
    ),
];

#[cfg(test)]
mod tests {
    use super::super::super::{Limits, Syntax, Template, Variables};
    use super::super::FILTERS;
    use super::*;

    #[test]
    fn every_filter_is_explained_in_the_same_order() {
        let explained: Vec<&str> = ABOUT.iter().map(|about| about.name).collect();
        assert_eq!(explained, FILTERS);
    }

    #[test]
    fn examples_come_to_what_they_promise() {
        for about in ABOUT {
            let uses = format!("| {}", about.name);
            assert!(about.example.contains(&uses), "{}: {}", about.name, about.example);
            assert!(about.description.ends_with('.'), "{}", about.name);
            let source = format!("${{{{ {} }}}}", about.example);
            let printed = Template::read(&source, Syntax::default())
                .and_then(|it| it.print(&Variables::default(), Limits::default()));
            assert_eq!(printed.as_deref(), Ok(about.result), "{source}");
        }
    }
}
