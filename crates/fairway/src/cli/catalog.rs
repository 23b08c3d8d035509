//! `fairway catalog` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use super::gitops::Place;

/// Options of `catalog`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Catalog {
    /// What to do.
    #[command(subcommand)]
    pub command: CatalogCommand,
}

/// What can be done with the catalog.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum CatalogCommand {
    /// List entities.
    #[command(visible_alias = "ls")]
    List(List),
    /// Show an entity with its relations.
    Get(Get),
    /// Find entities by words that are anywhere in them.
    Search(Search),
    /// List where entities are read, and what is wrong there.
    Locations(Locations),
    /// Have entities read from an address, and wait for them.
    Register(Register),
    /// Forget an address, and the entities from there.
    Unregister(Unregister),
    /// Have a location, or that of an entity, read again, and wait for it.
    Refresh(Refresh),
    /// Delete an entity that nothing leads to any more: an orphan.
    Delete(Delete),
    /// Judge files of entities without a server.
    Validate(Validate),
}

/// Options of `catalog list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// Only this kind, such as component.
    #[arg(short, long)]
    pub kind: Option<String>,
    /// Only what this means, as in Backstage's API: spec.type=service,metadata.tags=vm. Several: any of them.
    #[arg(short, long, value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Sort by a field, such as metadata.name or spec.type,desc.
    #[arg(long, value_name = "FIELD")]
    pub order: Vec<String>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Get {
    /// The entity: [KIND:][NAMESPACE/]NAME; a component if no kind is named.
    #[arg(value_name = "ENTITY")]
    pub entity: String,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog search`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Search {
    /// Words that must all be there.
    #[arg(required = true)]
    pub words: Vec<String>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog locations`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Locations {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog register`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Register {
    /// The address of a file, such as https://git.fairway.localhost:7443/OWNER/NAME/src/branch/main/catalog-info.yaml.
    pub url: String,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog unregister`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Unregister {
    /// The address, or the name of the location's object.
    pub location: String,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog refresh`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Refresh {
    /// An entity, an address, or the name of a location's object.
    pub what: String,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Delete {
    /// The entity: [KIND:][NAMESPACE/]NAME; a component if no kind is named.
    #[arg(value_name = "ENTITY")]
    pub entity: String,
    /// Whose catalog.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `catalog validate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Validate {
    /// Files to judge.
    #[arg(default_value = "catalog-info.yaml")]
    pub files: Vec<PathBuf>,
}
