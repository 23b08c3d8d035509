//! Scenarios: a small world carries out what the machine says, and what happens is written down.

mod interruptions;
mod ordering;
mod scenarios;
mod world;
