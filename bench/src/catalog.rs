//! Lists of a large catalog: what the index behind Backstage's API takes for the questions that pages ask.
//!
//! The floor is a list of 10,000 entities in 200 ms. Entities are as large as those that a golden path writes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use fairway_portal_entity::fields::Fields;
use fairway_portal_entity::query::{From, Query, facets};
use fairway_portal_entity::{Index, Record};
use serde_json::json;

#[derive(Args)]
pub(crate) struct Options {
    /// How many entities there are.
    #[arg(long, default_value_t = 10_000)]
    entities: usize,
    /// How often each question is asked.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

/// What a list of all may take.
const FLOOR: Duration = Duration::from_millis(200);

/// An entity as large as those that a golden path writes.
pub(crate) fn record(number: usize) -> Record {
    let kind = ["service", "website", "library"][number % 3];
    Record {
        uid: format!("{number:08x}-0000-4000-8000-000000000000"),
        entity: json!({
            "apiVersion": "backstage.io/v1alpha1", "kind": if number.is_multiple_of(5) { "API" } else { "Component" },
            "metadata": {
                "name": format!("service-{number:05}"), "title": format!("Service {number}"),
                "description": "A virtual machine that was made by a golden path, with a web server behind a gateway",
                "annotations": {
                    "backstage.io/managed-by-location": format!("url:https://git.fairway.localhost:7443/root/service-{number}/src/branch/main/catalog-info.yaml"),
                    "backstage.io/managed-by-origin-location": format!("url:https://git.fairway.localhost:7443/root/service-{number}/src/branch/main/catalog-info.yaml"),
                    "backstage.io/kubernetes-id": format!("service-{number}"), "argocd/app-name": format!("service-{number}"),
                },
                "labels": {"team": format!("team-{}", number % 50)}, "tags": ["vm", "golden-path", "debian"],
                "links": [{"url": "https://example.com", "title": "Dashboard"}],
            },
            "spec": {
                "type": kind, "lifecycle": "production",
                "owner": format!("group:default/team-{}", number % 50), "system": format!("system-{}", number % 200),
                "definition": "openapi: 3.0.0",
            },
        }),
        location: "location".to_owned(),
        parent: None,
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut index = Index::default();
    let begun = Instant::now();
    for number in 0..options.entities {
        index.insert(&record(number));
    }
    println!(
        "{} entities taken in: {:.0} ms",
        index.len(),
        millis(begun.elapsed())
    );
    let all = Query::default();
    let text = |index: &Index| {
        let mut text = String::new();
        for found in all.run(index) {
            found.write(&mut text);
        }
        text.len()
    };
    let list = ask(options, "list of all, whole", || text(&index));
    let fields = Fields::parse(["kind,metadata.name,metadata.namespace,spec.type,spec.owner"])?;
    ask(options, "list of all, five fields", || {
        let mut projected = 0;
        for found in all.run(&index) {
            let one = fields.as_ref().map(|fields| fields.project(&found.value()));
            projected += usize::from(std::hint::black_box(one).is_some());
        }
        projected
    });
    let services = Query::filtered(["kind=component,spec.type=service"])?;
    ask(options, "kind=component,spec.type=service", || {
        services.run(&index).len()
    });
    let page = Query::filtered(["kind=component"])?.ordered_by_field(["metadata.title,desc"])?;
    ask(options, "a sorted page of 20", || {
        page.page(&index, 20, &From::Offset(5000)).items.len()
    });
    let search = Query::default().searching("golden 4711", &[])?;
    ask(options, "two words anywhere", || search.run(&index).len());
    ask(options, "facets of kind, type and owner", || {
        facets(&index, &all, &["kind", "spec.type", "relations.ownedBy"]).map(|found| found.to_string().len())
    });
    if list > FLOOR {
        bail!("a list of all took {list:?}, more than the floor of {FLOOR:?}");
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The median of a question.
fn ask<T>(options: &Options, what: &str, mut question: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..options.rounds.max(1))
        .map(|_| {
            let begun = Instant::now();
            black_box(question());
            begun.elapsed()
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    println!("{what:<36} {:8.2} ms", millis(median));
    median
}
