//! Which entities questions mean, and that pages are the whole whoever made the cursor.

use proptest::prelude::*;

use super::*;
use crate::index::Record;

fn index(names: &[(&str, &str, &str)]) -> Index {
    let mut index = Index::default();
    for (kind, name, kind_of) in names {
        let mut spec = json!({"owner": "team", "lifecycle": "x", "children": [], "definition": "d"});
        if !kind_of.is_empty() {
            spec["type"] = json!(kind_of);
        }
        index.insert(&Record {
            uid: format!("uid-{name}"),
            entity: json!({
                "apiVersion": "backstage.io/v1alpha1", "kind": kind,
                "metadata": {"name": name, "title": format!("The {name}")}, "spec": spec,
            }),
            location: "l".to_owned(),
            parent: None,
        });
    }
    index
}

fn some() -> Index {
    index(&[
        ("Component", "web", "service"),
        ("Component", "Api-Server", "website"),
        ("Component", "lib", ""),
        ("API", "rest", "openapi"),
        ("Group", "team", "team"),
    ])
}

fn names(found: &[Found<'_>]) -> Vec<String> {
    found.iter().map(|one| one.reference.to_owned()).collect()
}

#[test]
fn queries_filter_and_sort() {
    let index = some();
    let run = |query: Query| names(&query.run(&index));
    assert_eq!(
        run(Query::default()),
        [
            "api:default/rest",
            "component:default/api-server",
            "component:default/lib",
            "component:default/web",
            "group:default/team"
        ]
    );
    let components = || Query::filtered(["kind=Component"]).unwrap();
    assert_eq!(
        run(components().ordered(["desc:metadata.name"]).unwrap()),
        [
            "component:default/web",
            "component:default/lib",
            "component:default/api-server"
        ]
    );
    // Who has no type is last, whichever way.
    for direction in ["asc:spec.type", "desc:spec.type"] {
        assert_eq!(
            run(components().ordered([direction]).unwrap()).last().unwrap(),
            "component:default/lib"
        );
    }
    assert_eq!(
        run(components()
            .ordered_by_field(["spec.lifecycle", "metadata.name,desc"])
            .unwrap())[0],
        "component:default/web"
    );
    let asked = json!({"$any": [{"kind": "api"}, {"spec.type": "service"}]});
    assert_eq!(
        run(Query::default().with_predicate(Some(&asked)).unwrap()),
        ["api:default/rest", "component:default/web"]
    );
    let text = |term: &str, fields: &[&str]| run(Query::default().searching(term, fields).unwrap());
    assert_eq!(text("SERV", &["metadata.name"]), ["component:default/api-server"]);
    assert_eq!(
        text(" the serv ", &[]),
        ["component:default/api-server", "component:default/web"]
    );
    assert_eq!(text("  ", &["metadata.name"]).len(), 5);
    assert_eq!(
        run(Query::filtered(["relations.ownedBy=group:default/team,kind=api"]).unwrap()),
        ["api:default/rest"]
    );
}

#[test]
fn wrong_questions_are_refused() {
    let refused = [
        Query::default().ordered(["name"]).map(|_| ()),
        Query::default().ordered(["up:name"]).map(|_| ()),
        Query::default().ordered(["asc:"]).map(|_| ()),
        Query::default().ordered_by_field(["name,up"]).map(|_| ()),
        Query::default()
            .ordered(vec!["asc:a"; MAX_ORDERS + 1])
            .map(|_| ()),
        Query::default()
            .searching(&"x".repeat(MAX_TERM + 1), &[])
            .map(|_| ()),
        Query::from_cursor("").map(|_| ()),
        Query::from_cursor("!").map(|_| ()),
        Query::from_cursor(&URL_SAFE_NO_PAD.encode("{}")).map(|_| ()),
        facets(&Index::default(), &Query::default(), &[]).map(|_| ()),
    ];
    for (at, outcome) in refused.iter().enumerate() {
        assert!(outcome.is_err(), "{at}");
    }
}

#[test]
fn facets_count_what_was_written() {
    let counted = facets(
        &some(),
        &Query::default(),
        &["kind", "Spec.Type", "relations.ownedBy", "none"],
    )
    .unwrap();
    assert_eq!(
        counted,
        json!({"facets": {
            "kind": [{"value": "API", "count": 1}, {"value": "Component", "count": 3}, {"value": "Group", "count": 1}],
            "Spec.Type": [
                {"value": "openapi", "count": 1}, {"value": "service", "count": 1}, {"value": "team", "count": 1},
                {"value": "website", "count": 1},
            ],
            "relations.ownedBy": [{"value": "group:default/team", "count": 4}],
            "none": [],
        }})
    );
}

/// All pages in one direction, from the first; and back again.
fn walk(index: &Index, query: &Query, limit: usize) -> (Vec<String>, Vec<String>) {
    let mut forth = Vec::new();
    let mut page = query.page(index, limit, &From::Offset(0));
    assert!(page.previous.is_none());
    let total = page.total;
    let mut last = None;
    loop {
        forth.extend(names(&page.items));
        let Some(next) = page.next.clone() else { break };
        let (query, from) = Query::from_cursor(&next).unwrap();
        page = query.page(index, limit, &from);
        assert_eq!(page.total, total);
        last = page.previous.clone();
    }
    let mut back = Vec::new();
    while let Some(cursor) = last {
        let (query, from) = Query::from_cursor(&cursor).unwrap();
        let page = query.page(index, limit, &from);
        back.splice(0..0, names(&page.items));
        last = page.previous.clone();
    }
    (forth, back)
}

#[test]
fn pages_are_all_there_is() {
    let index = some();
    for query in [
        Query::default(),
        Query::default().ordered_by_field(["spec.type,desc"]).unwrap(),
        Query::filtered(["kind=component"])
            .unwrap()
            .with_predicate(Some(&json!({"metadata.name": {"$exists": true}})))
            .unwrap()
            .searching("the", &["metadata.title"])
            .unwrap()
            .ordered_by_field(["metadata.name"])
            .unwrap(),
    ] {
        for limit in 1..7 {
            let all = names(&query.run(&index));
            let (forth, back) = walk(&index, &query, limit);
            assert_eq!(forth, all, "{limit}");
            // Back again: everything before the last page.
            assert_eq!(back, all[..back.len()], "{limit}");
        }
    }
    let page = Query::default().page(&index, 0, &From::Offset(0));
    assert_eq!((page.items.len(), page.total, page.next), (0, 5, None));
    let page = Query::default().page(&index, 2, &From::Offset(100));
    assert_eq!((page.items.len(), page.total), (0, 5));
}

#[test]
fn a_page_goes_on_where_the_last_ended_whatever_has_gone() {
    let mut index = some();
    let query = Query::default().ordered_by_field(["metadata.name"]).unwrap();
    let first = query.page(&index, 2, &From::Offset(0));
    assert_eq!(
        names(&first.items),
        ["component:default/api-server", "component:default/lib"]
    );
    let cursor = first.next.unwrap();
    index.remove("component:default/lib");
    let (query, from) = Query::from_cursor(&cursor).unwrap();
    assert_eq!(
        names(&query.page(&index, 2, &from).items),
        ["api:default/rest", "group:default/team"]
    );
}

proptest! {
    /// A cursor that somebody has written is refused, or is a question like any other.
    #[test]
    fn cursors_can_be_anything(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let index = some();
        for cursor in [text.clone(), URL_SAFE_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&text)] {
            if let Ok((query, from)) = Query::from_cursor(&cursor) {
                let page = query.page(&index, 3, &from);
                prop_assert!(page.items.len() <= 3 && page.total <= index.len());
            }
        }
    }

    /// So is one that was changed.
    #[test]
    fn changed_cursors_break_nothing(at in 0usize..200, to in any::<u8>()) {
        let index = some();
        let query = Query::filtered(["kind=component"]).unwrap().ordered_by_field(["spec.type,desc"]).unwrap();
        let cursor = query.page(&index, 1, &From::Offset(0)).next.unwrap();
        let mut content = URL_SAFE_NO_PAD.decode(cursor).unwrap();
        let at = at % content.len();
        content[at] = to;
        if let Ok((query, from)) = Query::from_cursor(&URL_SAFE_NO_PAD.encode(content)) {
            let page = query.page(&index, 2, &from);
            prop_assert!(page.items.len() <= 2 && page.total <= index.len());
        }
    }

    /// Pages of any size are the whole, in order.
    #[test]
    fn pages_partition(count in 0usize..40, limit in 1usize..15, descending in any::<bool>()) {
        let kinds = ["", "a", "b"];
        let names_of: Vec<String> = (0..count).map(|n| format!("n{:02}", (n * 7) % 40)).collect();
        let all: Vec<(&str, &str, &str)> = names_of.iter().enumerate()
            .map(|(n, name)| ("Component", name.as_str(), kinds[n % 3])).collect();
        let index = index(&all);
        let order = if descending { "spec.type,desc" } else { "spec.type" };
        let query = Query::default().ordered_by_field([order]).unwrap();
        let (forth, _) = walk(&index, &query, limit);
        prop_assert_eq!(forth, names(&query.run(&index)));
    }
}

#[test]
fn orders_may_be_objects() {
    let order = |field: &str, descending| Order {
        field: field.to_owned(),
        descending,
    };
    let query = Query::default()
        .ordered_by([("metadata.Name", "desc"), ("kind", "asc")])
        .unwrap();
    assert_eq!(query.orders, [order("metadata.name", true), order("kind", false)]);
    // A cursor asks the same.
    let written = Query::default()
        .ordered_by_field(["metadata.name,desc", "kind"])
        .unwrap();
    assert_eq!(query, written);
    for wrong in [("", "asc"), ("kind", "up"), ("kind", "")] {
        assert!(Query::default().ordered_by([wrong]).is_err(), "{wrong:?}");
    }
}
