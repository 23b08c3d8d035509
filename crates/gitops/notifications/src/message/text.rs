//! A text with Go's templates in it.

use std::sync::LazyLock;

use fairway_text_gotemplate::{
    Fault, Func, Functions, Host, Limits, Machine, Param, Templates, Value as GoValue, arg, parse, sprig,
};

use crate::facts::Facts;
use crate::functions::{self, name_of};

const LIMITS: Limits = Limits {
    depth: 50,
    work: 500_000,
    output: 1 << 20,
};

/// A text, parsed.
#[derive(Debug, Clone)]
pub(super) struct Text {
    name: String,
    templates: Templates,
}

impl Text {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut templates = Templates::default();
        templates.add(&parse(name, text, functions()).map_err(|error| error.to_string())?);
        Ok(Self {
            name: name.to_owned(),
            templates,
        })
    }

    pub(super) fn fill(&self, variables: &GoValue, facts: &Facts) -> Result<String, String> {
        let host = Asked(facts);
        let mut machine = Machine::new(functions(), &self.templates, &host, LIMITS);
        let out = machine
            .execute(&self.name, variables)
            .map_err(|error| error.to_string())?;
        String::from_utf8(out).map_err(|_| format!("template {}: the result is no text", self.name))
    }
}

/// Sprig's, but for the environment, and for what would be different if a message were made again.
fn functions() -> &'static Functions {
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
        let mut functions = Functions::builtin();
        sprig::add(&mut functions);
        for name in sprig::DIFFERS_EACH_TIME
            .iter()
            .filter(|name| !["now", "ago"].contains(name))
        {
            functions.remove(name);
        }
        functions.add(&[Func::variadic("call", &[Param::Any, Param::Any], call)]);
        functions
    });
    &FUNCTIONS
}

/// `call .repo.QueryEscape "x"`.
fn call(machine: &mut Machine<'_>, args: &[GoValue]) -> Result<GoValue, Fault> {
    let function = arg::any(args, 0);
    match name_of(function) {
        Some(name) => machine.ask(name, &args[1..]),
        None if function.is_nil() => Err("call of nil".into()),
        None => Err(format!("non-function of type {}", function.type_name()).into()),
    }
}

struct Asked<'a>(&'a Facts);

impl Host for Asked<'_> {
    fn now(&self) -> i128 {
        self.0.now
    }

    fn entropy(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }

    fn ask(&self, question: &str, args: &[GoValue]) -> Result<GoValue, Fault> {
        functions::call(question, args, self.0).map_err(Fault::new)
    }
}
