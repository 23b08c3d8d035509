//! Decisions about objects of machines' kinds, as a client gets them.

use std::cell::RefCell;

use fairway_admission::{Account, Action, Operation, Place, Request, Resource, World};
use fairway_text_yaml as yaml;
use serde_json::{Value, json};

use super::of;

mod data_volumes;
mod instances;
mod machines;
mod others;

/// A world of a few objects.
#[derive(Default)]
struct Fake {
    here: Vec<(Resource, Value)>,
    root: Vec<(Resource, Value)>,
    /// Who may do what: `USER VERB RESOURCE[/SUBRESOURCE] NAMESPACE`.
    rights: Vec<String>,
    asked: RefCell<Vec<String>>,
}

impl Fake {
    fn with(mut self, resource: Resource, object: &str) -> Self {
        self.here.push((resource, parse(object)));
        self
    }

    fn with_in_root(mut self, resource: Resource, object: &str) -> Self {
        self.root.push((resource, parse(object)));
        self
    }

    fn with_right(mut self, right: &str) -> Self {
        self.rights.push(right.to_owned());
        self
    }

    fn at(&self, place: Place) -> &[(Resource, Value)] {
        match place {
            Place::Here => &self.here,
            Place::Root => &self.root,
        }
    }
}

impl World for Fake {
    fn get(&self, place: Place, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        let found = self.list(place, resource, Some(namespace).filter(|it| !it.is_empty()), 99);
        found.into_iter().find(|it| it["metadata"]["name"] == name)
    }

    fn list(&self, place: Place, resource: Resource, namespace: Option<&str>, at_most: usize) -> Vec<Value> {
        let all = self.at(place).iter().filter(|(of, _)| *of == resource);
        all.map(|(_, object)| object.clone())
            .filter(|it| namespace.is_none_or(|namespace| it["metadata"]["namespace"] == namespace))
            .take(at_most)
            .collect()
    }

    fn may(&self, action: &Action<'_>, account: Option<Account<'_>>) -> bool {
        let who = account.map_or("asker", |account| account.name);
        let subresource = match action.subresource {
            "" => String::new(),
            other => format!("/{other}"),
        };
        let right = format!(
            "{who} {} {}{subresource} {}",
            action.verb, action.resource.plural, action.namespace
        );
        let may = self.rights.contains(&right);
        self.asked.borrow_mut().push(right);
        may
    }

    fn name_suffix(&self) -> String {
        "x7x7x".to_owned()
    }
}

fn parse(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const ENGINE: &str = "system:serviceaccount:kube-system:fairway-machines-engine";
const PERSON: &str = "somebody";

fn request<'r>(world: &'r Fake, old: Option<&'r Value>, user: &'r str) -> Request<'r> {
    Request {
        operation: match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        },
        subresource: None,
        old,
        namespace: "vms",
        user,
        is_local_user: false,
        subject: fairway_admission::Subject::default(),
        now: "2026-11-17T12:00:00Z",
        world,
    }
}

/// What becomes of a write: the object as it is then, and warnings; or the code, the message and the causes of a refusal.
fn write(kind: Resource, request: &Request<'_>, object: &Value) -> Result<(Value, Vec<String>), String> {
    let domain = of(kind.group, kind.plural).unwrap();
    let mut object = object.clone();
    let told = domain.complete(request, &mut object).and_then(|mut warnings| {
        warnings.extend(domain.judge(request, &object)?);
        Ok(warnings)
    });
    match told {
        Ok(warnings) => Ok((object, warnings)),
        Err(refusal) => {
            let mut text = format!("{} {} {}", refusal.code, refusal.webhook, refusal.message.trim());
            for cause in refusal.causes {
                text += &format!("\n  {} {}: {}", cause.reason, cause.field, cause.message);
            }
            Err(text)
        }
    }
}

/// The refusal of a write.
fn refused(kind: Resource, request: &Request<'_>, object: &Value) -> String {
    match write(kind, request, object) {
        Ok((object, warnings)) => panic!("accepted with {warnings:?}: {object:#}"),
        Err(refusal) => refusal,
    }
}

/// The class of what a write does, and why.
fn impact(kind: Resource, request: &Request<'_>, object: &Value) -> String {
    let told = of(kind.group, kind.plural)
        .unwrap()
        .impact(request, object)
        .unwrap();
    match told.reason.as_str() {
        "" => told.class,
        reason => format!("{}: {reason}", told.class),
    }
}

#[test]
fn what_is_the_same_to_go() {
    for (one, other, expected) in [
        ("{a: 1}", "{a: 1}", true),
        ("{a: 1}", "{a: 2}", false),
        ("{a: [], b: null}", "{}", true),
        ("{resources: {}}", "{}", true),
        ("{resources: {limits: null}}", "{}", true),
        ("{bridge: {}}", "{masquerade: {}}", false),
        ("{devices: {rng: {}}}", "{devices: {}}", false),
        ("[{a: 1}]", "[{a: 1, b: []}]", true),
        ("[1, 2]", "[2, 1]", false),
    ] {
        let (one, other) = (parse(one), parse(other));
        assert_eq!(super::same(&one, &other), expected, "{one} {other}");
        assert_eq!(super::same(&other, &one), expected, "{other} {one}");
    }
}

#[test]
fn every_kind_of_machines_is_looked_after() {
    let kinds = fairway_api::machine_definitions();
    assert!(!kinds.is_empty());
    for definition in kinds {
        let (group, plural) = (definition.group(), definition.kind().plural);
        let domain = of(group, plural).unwrap_or_else(|| panic!("{plural}.{group}"));
        let world = Fake::default();
        let asked = request(&world, None, PERSON);
        // Objects that say nothing do no harm, and somebody knows what they do.
        let mut object = json!({"metadata": {"name": "a", "namespace": "vms"}, "spec": {}});
        let _ = domain.complete(&asked, &mut object);
        let _ = domain.judge(&asked, &object);
        assert!(domain.impact(&asked, &object).is_some(), "{plural}.{group}");
    }
    assert!(of("argoproj.io", "applications").is_none());
}
