//! Backstage's software templates (`scaffolder.backstage.io/v1beta3`), without anything that touches the world.
//!
//! - [`template`]: what a Template says, read and judged: pages of questions, steps, outputs.
//! - [`schema`], [`answers`]: whether answers are what the questions want.
//! - [`pages`], [`asking`]: which pages are asked, and which questions answers lead to.
//! - [`expression`], [`input`]: `${{ }}` in texts and in the inputs of steps; [`turns`]: how often a step is done.
//! - [`files`], [`skeleton`]: the working tree of a run, which is a value, and what `fetch:template` makes of a skeleton.
//! - [`run`]: a run as a state machine whose state is data: what to do next, forwards and backwards.
//! - [`secrets`], [`leak`]: what must not be seen in logs and objects, and must not reach Git.
//! - [`names`]: references to entities and repositories.
//!
//! Everything that a stranger writes is bounded: texts, nesting, steps of expressions, files and their sizes. The crate must not know
//! actions, clients, Git or clocks.

pub mod answers;
pub mod asking;
pub mod change;
pub mod expression;
pub mod files;
pub mod input;
pub mod leak;
pub mod names;
pub mod pages;
mod restricted;
pub mod run;
pub mod schema;
mod secret_fields;
pub mod secrets;
pub mod skeleton;
pub mod template;
pub mod turns;
